# Stands for python:3.11-slim-bookworm, where no registry answers: the same commands, from Debian's own packages.
FROM scratch
ADD python.tar /
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED /var/log/*.log /var/log/apt/* \
    && for name in python python3; do ln -s /usr/bin/python3.11 /usr/local/bin/$name; done
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
CMD ["python3"]
