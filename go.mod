module gompi

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/klauspost/compress v1.20.3
	github.com/spf13/pflag v1.0.10
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)
