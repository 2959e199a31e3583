"""Code cannot hang up the terminal of another."""
# covers: kernel surface of container escapes; dead calls

from probe import decide_by_answer, syscall

decide_by_answer(syscall(153), "vhangup")
