// The control API: JSON over HTTP, on loopback. Go's side of it is control.go.
import http from 'node:http';
import rhea from 'rhea';
import { DecodeError, describe, parse } from './encoding.mjs';
import { BadFault } from './faults.mjs';
import { Refused } from './queue.mjs';

const { message: encoder, types } = rhea;
const largestRequest = 2 ** 28;

/** An answer that is not 200. */
class Answer extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Control {
  #broker;
  #amqp;

  constructor(broker, amqp) {
    this.#broker = broker;
    this.#amqp = amqp;
  }

  /** listen gives the address it listens on. */
  async listen(host, port) {
    const server = http.createServer((request, response) => this.#serve(request, response));
    await new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    return `http://${host}:${server.address().port}`;
  }

  async #serve(request, response) {
    let status = 200;
    let body;
    try {
      const url = new URL(request.url, 'http://control');
      body = await this.#route(request.method, url, await read(request));
    } catch (err) {
      status = err.status ?? (err instanceof BadFault || err instanceof DecodeError || err instanceof SyntaxError ? 400 : 500);
      if (status === 500) console.error(err);
      body = { error: err.message, condition: err.condition };
    }
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body ?? {}));
  }

  #route(method, url, body) {
    const [, ...parts] = url.pathname.split('/').map(decodeURIComponent);
    switch (`${method} ${parts[0]}`) {
      case 'GET queues':
        return parts[1] === undefined ? this.#list() : this.#messages(this.#queue(parts[1]), url.searchParams);
      case 'POST queues':
        return this.#send(this.#queue(parts[1]), body);
      case 'DELETE queues':
        return this.#purge(this.#queue(parts[1]));
      case 'GET faults':
        return this.#broker.faults.list();
      case 'POST faults':
        if (body.queue) this.#queue(body.queue);
        return this.#broker.faults.add(body);
      case 'DELETE faults':
        return this.#broker.faults.clear();
      case 'GET clock':
        return { now: new Date(this.#broker.clock.now()).toISOString() };
      case 'POST clock':
        return this.#advance(body);
      case 'POST down':
        return this.#amqp.down();
      case 'POST up':
        return this.#amqp.up().then(() => {});
      case 'POST disconnect':
        return this.#amqp.disconnect();
      default:
        throw new Answer(404, `no ${method} ${url.pathname}`);
    }
  }

  #queue(path) {
    const queue = this.#broker.queue(path);
    if (!queue) throw new Answer(404, `there is no queue ${path}`);
    return queue;
  }

  #list() {
    this.#settleTime();
    return this.#broker.queues().filter((q) => q.deadLetters).map((q) => ({
      name: q.path,
      ...q.counts(),
      deadLetter: q.deadLetters.counts().active,
      deadLetterLocked: q.deadLetters.locked,
      stats: q.stats,
      deadLetterStats: q.deadLetters.stats,
    }));
  }

  #messages(queue, query) {
    this.#settleTime();
    return queue.peek(Number(query.get('from') ?? 0), Number(query.get('count') ?? 100)).map(describe);
  }

  #purge(queue) {
    const purged = queue.purge();
    this.#broker.changed(queue);
    return { purged };
  }

  // send puts a message in as a client would, past all faults. It goes through the same checks.
  #send(queue, m) {
    if (!queue.deadLetters) throw new Answer(400, 'nobody sends to a dead-letter queue');
    const body = Buffer.from(m.body ?? '', 'base64');
    const encoded = encoder.encode({
      message_id: m.messageId || undefined,
      content_type: m.contentType || undefined,
      subject: m.subject || undefined,
      correlation_id: m.correlationId || undefined,
      application_properties: m.applicationProperties ?? undefined,
      message_annotations: m.scheduledEnqueueTime && { 'x-opt-scheduled-enqueue-time': types.wrap_timestamp(Date.parse(m.scheduledEnqueueTime)) },
      body: m.bodyType === 'value' ? body.toString() : encoder.data_section(body),
    });
    try {
      const [sequenceNumber] = queue.send([parse(encoded)], this.#broker.clock.now());
      this.#broker.changed(queue);
      return { sequenceNumber };
    } catch (err) {
      if (err instanceof Refused) err.status = 409;
      throw err;
    }
  }

  #advance({ ms }) {
    if (!Number.isInteger(ms) || ms < 0) throw new Answer(400, 'ms is a whole number of milliseconds, not below 0');
    this.#broker.advance(ms);
    this.#amqp.deliver();
    return { now: new Date(this.#broker.clock.now()).toISOString() };
  }

  // What is due has happened, whether its timer has fired or not.
  #settleTime() {
    const now = this.#broker.clock.now();
    for (const queue of this.#broker.queues()) queue.tick(now);
  }
}

async function read(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > largestRequest) throw new Answer(413, 'the request is too large');
    chunks.push(chunk);
  }
  return size === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
}
