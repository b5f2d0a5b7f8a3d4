// An emulator for Azure Service Bus on loopback. doc.go says what it does and what it does not do.
//
//   node server.mjs --queues '[{"name":"jobs","lockDuration":60000}]' [--amqp 127.0.0.1:0] [--control 127.0.0.1:0]
//
// When it listens it prints one line: {"amqp":"127.0.0.1:PORT","control":"http://127.0.0.1:PORT"}. It ends when its standard
// input closes (the parent process, which has the other end, ended) and on SIGTERM.
import { parseArgs } from 'node:util';
import { AmqpServer } from './lib/amqp.mjs';
import { Broker } from './lib/broker.mjs';
import { Control } from './lib/control.mjs';

function address(text) {
  const [, host, port] = /^(127\.0\.0\.1|localhost|\[?::1\]?):(\d+)$/.exec(text) ?? [];
  if (!host) throw new Error(`${text} is not an address on loopback`);
  return [host.replace(/[[\]]/g, ''), Number(port)];
}

async function main() {
  const { values } = parseArgs({
    options: {
      queues: { type: 'string' },
      amqp: { type: 'string', default: '127.0.0.1:0' },
      control: { type: 'string', default: '127.0.0.1:0' },
    },
  });
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
  process.on('SIGTERM', () => process.exit(0));
  process.on('SIGINT', () => {}); // Ctrl-C is for the parent process, which closes our standard input at its end

  const broker = new Broker(JSON.parse(values.queues ?? 'null') ?? []);
  const amqp = new AmqpServer(broker, ...address(values.amqp));
  const control = new Control(broker, amqp);
  const listens = { amqp: await amqp.up(), control: await control.listen(...address(values.control)) };
  broker.pass();
  console.log(JSON.stringify(listens));
}

main().catch((err) => {
  console.error(err.message);
  process.exit(1);
});
