// Loaded before Azurite (node --require): the local stack holds our standard input open, so when it closes the stack has
// ended, in whatever way, and so do we.
process.stdin.resume();
process.stdin.on("end", () => process.kill(process.pid, "SIGTERM"));
