// Lets Go compile a function without a body, whose other end is in Argo (main.go).
