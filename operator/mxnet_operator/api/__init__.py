"""Definition of an MXJob: types, names, defaults, validation, conditions, and the CRDs generated from them."""
