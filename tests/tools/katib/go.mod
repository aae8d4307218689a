module mxnet-operator.test/katib

go 1.26.0

require github.com/tidwall/gjson v1.14.1

require (
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
)
