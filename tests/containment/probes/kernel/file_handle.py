"""Code cannot learn a handle of a file."""
# covers: known failure: open_by_handle_at (shocker)

from probe import decide_by_answer, syscall

decide_by_answer(syscall(303, -100, 0, 0, 0, 0), "name_to_handle_at")
