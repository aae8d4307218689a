#!/bin/sh
# Installs the commit-msg hook of this checkout, where git looks for hooks and nobody has one there (docs/decisions/tests.md).
set -eu
MARK='Installed by make install of mxnet-operator.'

# A release's archive has no repository, or lies in somebody else's.
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] || exit 0
if [ -n "$(git config --get core.hooksPath || true)" ]; then
    echo "core.hooksPath is set: the commit-msg hook is not installed. tools/commit_message.py FILE checks a message."
    exit 0
fi
hooks=$(git rev-parse --git-path hooks)
hook=$hooks/commit-msg
if { [ -e "$hook" ] || [ -L "$hook" ]; } && ! grep -qF "$MARK" "$hook" 2>/dev/null; then
    echo "$hook is not ours: it stays as it is. tools/commit_message.py FILE checks a message."
    exit 0
fi
if ! mkdir -p "$hooks" 2>/dev/null || [ ! -w "$hooks" ]; then
    echo "$hooks can't be written: the commit-msg hook is not installed. tools/commit_message.py FILE checks a message."
    exit 0
fi
# All worktrees share it: each runs its own check, and one without check or .venv is left alone.
cat >"$hook.new.$$" <<END
#!/bin/sh
# $MARK Delete this file to be without it; git commit --no-verify skips it once.
top=\$(git rev-parse --show-toplevel) || exit 0
check=\$top/tools/commit_message.py
python=\$top/.venv/bin/python
[ -f "\$check" ] && [ -x "\$python" ] || exit 0
exec "\$python" "\$check" "\$1"
END
chmod +x "$hook.new.$$"
mv "$hook.new.$$" "$hook"
