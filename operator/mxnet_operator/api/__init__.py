"""What an MXJob is: types, names, defaults, validation, conditions and the CRD made from them."""
