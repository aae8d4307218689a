# Puts this file's folder before whatever PYTHONPATH the image sets, then becomes the command that is its arguments.
# Any POSIX shell: `sh /var/run/mxjob/failfast/run.sh python train.py`.
PYTHONPATH=${0%/*}${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
exec "$@"
