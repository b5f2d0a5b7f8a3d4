// Package servicebus runs the vendor's JavaScript SDK of Service Bus against the emulator: a second client that knows
// nothing of our code. checks.mjs says what the real service does, check by check; the test lists what the emulator
// refuses on purpose. `make sdkchecks` installs the SDK and runs it, as part of `make check`.
package servicebus
