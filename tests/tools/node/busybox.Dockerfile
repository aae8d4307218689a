# A shell and its commands, for init containers and sidecars.
FROM scratch
COPY root /
RUN ["/bin/busybox", "--install", "-s", "/bin"]
ENV PATH=/bin
CMD ["sh"]
