"""Values of parameters that would break out of a manifest into which they were pasted."""

HOSTILE = [
    "quotes \" and ' and `",
    "two\nlines: {yaml: true}\n- item",
    "${HOME} $(HOME) {{{ }}} {",
    '}}\\"\t\u2028 é 漢 </script>',
    '"], "hostPID": true, "x": ["',
    "$$ $(ARGO_POD_NAME) $$(HOME) $(NOT_THERE)",
]
