#!/bin/sh
# Answers in the place of the machine's own pip, which knows other packages than the image's.
case "$1" in
list | freeze)
    exec python3 -c 'from importlib.metadata import distributions as d; print(*sorted(f"{i.name}=={i.version}" for i in d()), sep="\n")'
    ;;
esac
# Set where the sandbox has a way out.
if [ -n "$CELLBLOCK_EGRESS" ]; then
    exec python3 -I "${0%/*}/../cellblock_kernel/library/pip.py" "$@"
fi
echo "pip: packages cannot be installed from inside of the sandbox, which has no network:" \
    "name packages in the call's \`requirements\` (on the command line \`--require\`) and run the code again" >&2
exit 1
