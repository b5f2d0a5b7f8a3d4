// The AMQP side: connections, links, deliveries and their settlement. rhea does the protocol; what it gets wrong, or does
// by itself where a broker must decide, is done here instead. Each such place says what it works around.
import rhea from 'rhea';
import frames from 'rhea/lib/frames.js';
import { DecodeError, encodeMessage, parse, parseBatch } from './encoding.mjs';
import { cbs, manage } from './management.mjs';
import { Refused } from './queue.mjs';

const { message: outcomes, types } = rhea;

// rhea decodes every message it gets and drops the bytes. The broker keeps the bytes and decodes what it needs.
const decodeMessage = outcomes.decode;
outcomes.decode = (bytes) => bytes;

const batchFormat = 0x80013700;
const retryDelay = 5; // ms, for a client whose session window is full

const accepted = () => outcomes.accepted().described();
const rejected = (condition, description, info) => outcomes.rejected({ error: { condition, description, info } }).described();
const lockLost = () => rejected('com.microsoft:message-lock-lost',
  'The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.');

/** AmqpServer serves the queues of a broker. */
export class AmqpServer {
  #broker;
  #container;
  #host;
  #port;
  #server;
  #sockets = new Set();
  #consumers = new Map(); // queue -> links that receive from it
  #pumping = new Set(); // queues whose pump is to run soon
  #replies = new Map(); // connection -> (reply address -> link)

  constructor(broker, host, port) {
    this.#broker = broker;
    this.#host = host;
    this.#port = port;
    this.#container = rhea.create_container({ id: 'servicebus-emulator' });
    broker.onReady = (queue) => this.#pumpSoon(queue);
    this.#handleEvents();
  }

  // ---- connections

  /** up begins to take connections, and gives the address. */
  async up() {
    if (this.#server) return this.#address();
    const server = this.#container.listen({
      host: this.#host,
      port: this.#port,
      // rhea writes every frame by itself; without this Nagle's algorithm adds 40 ms here and there.
      noDelay: true,
      // The ring of rhea also limits how many deliveries may be unsettled; a receiver of the SDK may hold 5,000.
      session_buffer_size: 8192,
      receiver_options: { autoaccept: false, autosettle: false, credit_window: 1000 },
      sender_options: { autosettle: false, treat_modified_as_released: false }, // or an abandon would come as a release too
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise((resolve, reject) => {
      server.once('listening', resolve);
      server.once('error', reject);
    });
    this.#server = server;
    this.#port = server.address().port; // the same one after every down
    return this.#address();
  }

  #address() {
    return `${this.#host}:${this.#port}`;
  }

  /** down ends all connections; new ones are refused. */
  async down() {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    this.disconnect();
    await closed;
  }

  /** disconnect ends all connections without a word. */
  disconnect() {
    for (const socket of this.#sockets) drop(socket);
  }

  #handleEvents() {
    const c = this.#container;
    c.on('receiver_open', ({ receiver }) => this.#guard(receiver, () => this.#openIncoming(receiver)));
    c.on('sender_open', ({ sender }) => this.#guard(sender, () => this.#openOutgoing(sender)));
    c.on('message', (context) => this.#guard(context.receiver, () => this.#message(context)));
    c.on('sender_flow', ({ sender }) => sender.queue && this.#pumpSoon(sender.queue));
    for (const outcome of ['accepted', 'released', 'rejected', 'modified']) {
      c.on(outcome, ({ delivery }) => this.#guard(delivery.link, () => this.#settle(delivery, outcome)));
    }
    // The SDK ends its sessions without detaching their links.
    c.on('sender_close', ({ sender }) => this.#forget((link) => link === sender));
    c.on('session_close', ({ session }) => this.#forget((link) => link.session === session));
    for (const gone of ['disconnected', 'connection_close']) {
      c.on(gone, ({ connection }) => {
        this.#forget((link) => link.connection === connection);
        this.#replies.delete(connection);
      });
    }
    // Without a listener each of these would end the process. They say that a client went away or broke the protocol.
    for (const name of ['error', 'connection_error', 'protocol_error', 'session_error', 'sender_error', 'receiver_error']) {
      c.on(name, (event) => {
        if (event instanceof Error) console.error(`${name}: ${event.message}`);
      });
    }
  }

  // guard keeps a mistake of one client, or of ours, from ending the process.
  #guard(link, handle) {
    try {
      handle();
    } catch (err) {
      console.error(err);
      link.close({ condition: 'amqp:internal-error', description: String(err.message) });
    }
  }

  #forget(gone) {
    for (const [queue, links] of this.#consumers) {
      this.#consumers.set(queue, links.filter((link) => !gone(link)));
    }
  }

  // ---- links

  // A link is refused with an answer that has neither source nor target, then a detach: the SDK keeps a link whose answer
  // has them, although it is dead, and never makes another.
  #refuse(link, condition, description) {
    link.local.attach.source = undefined;
    link.local.attach.target = undefined;
    link.close({ condition, description });
  }

  #echo(link) {
    const remote = link.remote.attach;
    link.local.attach.snd_settle_mode = remote.snd_settle_mode ?? 2;
    link.local.attach.rcv_settle_mode = remote.rcv_settle_mode ?? 0;
    link.set_source({ address: remote.source?.address });
    link.set_target({ address: remote.target?.address });
  }

  // find gives {queue, management} of an address, or refuses the link.
  #find(link, address) {
    if (!address) {
      this.#refuse(link, 'amqp:not-implemented', 'the emulator has neither transactions nor links without an address');
      return undefined;
    }
    const management = address.toLowerCase().endsWith('/$management');
    const queue = this.#broker.queue(management ? address.slice(0, -'/$management'.length) : address);
    if (!queue) {
      this.#refuse(link, 'amqp:not-found', `The messaging entity '${address}' could not be found.`);
      return undefined;
    }
    const fault = this.#broker.faults.strike('attach', queue);
    if (!fault) return { queue, management };
    if (fault.then === 'drop') drop(link.connection.socket);
    else this.#refuse(link, fault.condition, 'injected');
    return undefined;
  }

  // The client sends.
  #openIncoming(link) {
    const address = link.remote.attach.target?.address;
    if (address === '$cbs') {
      link.answer = cbs;
      this.#echo(link);
      return;
    }
    const found = this.#find(link, address);
    if (!found) return;
    if (found.management) {
      link.answer = (request) => manage(found.queue, request, this.#broker.clock.now());
    } else if (!found.queue.deadLetters) {
      this.#refuse(link, 'amqp:not-allowed', 'nobody sends to a dead-letter queue');
      return;
    } else {
      link.local.attach.max_message_size = found.queue.settings.maxMessageSize;
    }
    link.queue = found.queue;
    this.#echo(link);
  }

  // The client receives.
  #openOutgoing(link) {
    const { source, target } = link.remote.attach;
    if (source?.address === '$cbs') {
      this.#replyTo(link, target);
      return;
    }
    const found = this.#find(link, source?.address);
    if (!found) return;
    if (found.management) {
      this.#replyTo(link, target);
      return;
    }
    if (Object.keys(source.filter ?? {}).some((name) => name.includes('session'))) {
      this.#refuse(link, 'amqp:not-allowed', 'a queue that requires no sessions has no sessions to receive from');
      return;
    }
    link.queue = found.queue;
    this.#echo(link);
    this.#consumers.set(found.queue, [...this.#consumersOf(found.queue), link]);
  }

  #consumersOf(queue) {
    return this.#consumers.get(queue) ?? [];
  }

  // The address for answers is the link's target; without one its name is meant, as the JavaScript SDK has it.
  #replyTo(link, target) {
    this.#echo(link);
    const links = this.#replies.get(link.connection) ?? new Map();
    this.#replies.set(link.connection, links.set(target?.address ?? link.name, link));
  }

  // ---- what a client sends

  #message({ receiver, delivery, message }) {
    if (receiver.answer) {
      this.#request(receiver, delivery, message);
      return;
    }
    const { queue } = receiver;
    const fault = this.#broker.faults.strike('send', queue);
    let state = accepted();
    if (!fault || fault.apply) state = this.#store(queue, delivery, message);
    this.#answer(delivery, state, fault);
  }

  // store gives the outcome of a send.
  #store(queue, delivery, bytes) {
    try {
      if (bytes.length > queue.settings.maxMessageSize) {
        throw new Refused('amqp:link:message-size-exceeded', `a message of ${bytes.length} bytes; the queue takes ${queue.settings.maxMessageSize}`);
      }
      queue.send(delivery.format === batchFormat ? parseBatch(bytes) : [parse(bytes)], this.#broker.clock.now());
    } catch (err) {
      if (!(err instanceof Refused || err instanceof DecodeError)) throw err;
      queue.stats.refused++;
      return rejected(err.condition ?? 'amqp:decode-error', err.message);
    }
    this.#broker.changed(queue);
    return accepted();
  }

  #request(link, delivery, bytes) {
    const request = decodeMessage(bytes);
    const reply = perform(link, request);
    if (link.queue) this.#broker.changed(link.queue);
    settle(delivery, true, accepted());
    const to = this.#replies.get(link.connection)?.get(request.reply_to);
    if (!to) return; // nothing waits for it any more
    const properties = { 'status-code': types.wrap_int(reply.status), 'status-description': reply.description };
    if (reply.condition) properties['error-condition'] = types.wrap_symbol(reply.condition);
    to.send({
      correlation_id: request.message_id,
      application_properties: properties,
      body: reply.body ?? {},
    });
  }

  // answer settles what a client sent, or spoils the answer.
  #answer(delivery, state, fault) {
    if (!fault || fault.then === 'reject') {
      settle(delivery, true, fault ? rejected(fault.condition, 'injected') : state);
    } else {
      spoil(delivery, fault);
    }
  }

  // ---- what a client receives

  #pumpSoon(queue) {
    if (this.#pumping.has(queue)) return;
    this.#pumping.add(queue);
    // Later, because rhea's session cannot be entered again while it dispatches.
    setImmediate(() => {
      this.#pumping.delete(queue);
      this.#pump(queue);
    });
  }

  /** deliver does at once what is to be done soon. It must not be called from within an event of rhea. */
  deliver() {
    for (const queue of this.#consumers.keys()) this.#pump(queue);
  }

  // pump hands messages out, one to each receiver in turn, as long as there are messages and credit.
  #pump(queue) {
    const now = this.#broker.clock.now();
    queue.tick(now);
    for (;;) {
      const links = this.#consumersOf(queue);
      const next = links.findIndex((link) => link.is_open() && link.sendable() && isFree(link.session));
      if (next < 0 || !queue.hasReady()) break;
      const [link] = links.splice(next, 1);
      links.push(link);
      this.#send(link, queue, now);
    }
    if (queue.hasReady() && this.#consumersOf(queue).some((link) => link.sendable() && !isFree(link.session))) {
      setTimeout(() => this.#pumpSoon(queue), retryDelay); // rhea has no event for a window that opens
    }
    this.#broker.setAlarm(); // for the locks
  }

  #send(link, queue, now) {
    const settled = link.local.attach.snd_settle_mode === 1; // receive and delete
    const taken = settled ? { message: queue.takeAndDelete(), token: Buffer.alloc(16) } : queue.take(now);
    // With a format rhea takes the bytes as they are.
    const delivery = link.send(encodeMessage(taken.message, taken.until), taken.token, 0);
    delivery.token = taken.token.toString('hex');
    // Only writing the frame takes the credit.
    link.session.outgoing.process();
  }

  // settle does what a client says of a message. The client waits for an answer: it never settles first.
  #settle(delivery, outcome) {
    const { queue } = delivery.link;
    if (!queue || delivery.answered) return;
    delivery.answered = true;
    const now = this.#broker.clock.now();
    const fault = this.#broker.faults.strike('settle', queue);
    if (fault?.then === 'lock-lost') queue.lose(delivery.token, now);
    const state = !fault || fault.apply || fault.then === 'lock-lost' ? this.#apply(queue, delivery, outcome, now) : accepted();
    this.#broker.changed(queue);
    if (fault && fault.then !== 'lock-lost') {
      if (fault.then === 'reject') settle(delivery, false, rejected(fault.condition, 'injected'));
      else spoil(delivery, fault);
      return;
    }
    settle(delivery, false, state);
  }

  #apply(queue, delivery, outcome, now) {
    const { token, remote_state: state } = delivery;
    let held;
    switch (outcome) {
      case 'accepted':
        held = queue.complete(token, now);
        break;
      case 'released':
        held = queue.release(token, now);
        break;
      case 'modified':
        // Not an unknown condition: the SDK would take its connection down and try for a minute.
        if (state.undeliverable_here) return rejected('amqp:not-allowed', 'the emulator cannot defer messages');
        held = queue.abandon(token, now, state.message_annotations);
        break;
      case 'rejected':
        if (!queue.deadLetters) return rejected('amqp:not-allowed', 'a dead letter cannot be dead-lettered');
        held = queue.deadLetter(token, now, state.error?.info);
        break;
      default:
        throw new Error(`no outcome ${outcome}`);
    }
    return held ? accepted() : lockLost();
  }
}

// perform answers a request, also one that makes no sense.
function perform(link, request) {
  try {
    return link.answer(request);
  } catch (err) {
    if (!(err instanceof TypeError || err instanceof DecodeError)) throw err;
    return { status: 400, condition: 'com.microsoft:argument-error', description: err.message };
  }
}

// isFree says whether the session can take another message: nothing waits in it, and the client's window is open.
function isFree({ outgoing }) {
  return outgoing.next_pending_delivery === outgoing.next_delivery_id && outgoing.transfer_window() > 0;
}

// settle writes a disposition of its own for each delivery: rhea merges neighbours without comparing their outcomes, so
// of two sends, one stored and one refused, both would get the same answer.
function settle(delivery, receiver, state) {
  if (!delivery.remote_settled || !receiver) {
    delivery.link.session.output(frames.disposition({ role: receiver, first: delivery.id, last: delivery.id, settled: true, state }));
  }
  delivery.settled = true;
  delivery.remote_settled = true; // the SDK never says so, and rhea would keep the delivery for ever
  delivery.link.connection._register();
}

function spoil(delivery, fault) {
  if (fault.then === 'drop') drop(delivery.link.connection.socket);
  if (fault.then === 'detach') delivery.link.close({ condition: fault.condition, description: 'injected' });
  // hang: never a word. The delivery stays in rhea's ring.
}

// drop ends a connection without a word. Without an error rhea would not notice.
function drop(socket) {
  socket.destroy(new Error('dropped by the emulator'));
}
