// The journal: one line of JSON for every change that must survive the death of the process. It is written before the
// change is answered, and not synced: it outlives the process, not the machine. Locks are not in it: after a start every
// message that was locked is free again, with the delivery count it had.
import fs from 'node:fs';
import { fromRecord, toRecord } from './encoding.mjs';

/** NoJournal is the journal of an emulator that keeps nothing. */
export class NoJournal {
  put() {}
  remove() {}
  seen() {}
  clock() {}
}

export class Journal {
  #fd;

  /**
   * Opens the file, puts what it says into the queues and the clock, and writes it anew: only what still counts is left.
   * Records of queues that are not there any more are left out; `lost` gets the names of those that had messages.
   */
  constructor(file, queues, clock, lost) {
    const state = read(file);
    clock.offset = state.offset;
    restore(state, queues, clock.now(), lost);
    const fresh = `${file}.new`;
    this.#fd = fs.openSync(fresh, 'w', 0o600);
    this.#rewrite(queues, clock);
    fs.renameSync(fresh, file);
  }

  #rewrite(queues, clock) {
    this.clock(clock.offset);
    for (const queue of queues.values()) {
      const { messages, seen, next } = queue.snapshot();
      this.#line({ op: 'next', queue: queue.path, next });
      for (const [id, at] of seen) this.seen(queue, id, at);
      for (const m of messages) this.put(queue, m);
    }
  }

  put(queue, m) {
    this.#line({ op: 'put', queue: queue.path, message: toRecord(m) });
  }

  remove(queue, m) {
    this.#line({ op: 'remove', queue: queue.path, sequence: m.sequence });
  }

  seen(queue, id, at) {
    this.#line({ op: 'seen', queue: queue.path, id, at });
  }

  clock(offset) {
    this.#line({ op: 'clock', offset });
  }

  #line(record) {
    fs.writeSync(this.#fd, `${JSON.stringify(record)}\n`);
  }
}

function read(file) {
  const state = { offset: 0, queues: new Map() };
  if (!fs.existsSync(file)) return state;
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  const torn = lines.pop(); // '' unless the process died in the middle of a line, which was then never answered
  if (torn) console.error('the last line of the journal is torn and is left out');
  for (const [i, line] of lines.entries()) {
    try {
      apply(state, JSON.parse(line));
    } catch (err) {
      throw new Error(`line ${i + 1} of the journal ${file}: ${err.message}`, { cause: err });
    }
  }
  return state;
}

function apply(state, record) {
  if (record.op === 'clock') {
    state.offset = record.offset;
    return;
  }
  const queue = state.queues.get(record.queue) ?? { messages: new Map(), seen: new Map(), next: 1 };
  state.queues.set(record.queue, queue);
  switch (record.op) {
    case 'next':
      queue.next = record.next;
      break;
    case 'put':
      queue.messages.set(record.message.sequence, record.message);
      queue.next = Math.max(queue.next, record.message.sequence + 1);
      break;
    case 'remove':
      queue.messages.delete(record.sequence);
      break;
    case 'seen':
      queue.seen.delete(record.id); // so that the oldest stay first
      queue.seen.set(record.id, record.at);
      break;
    default:
      throw new Error(`unknown record ${record.op}`);
  }
}

function restore(state, queues, now, lost) {
  for (const [path, kept] of state.queues) {
    const queue = queues.get(path);
    if (!queue) {
      if (kept.messages.size > 0) lost.push(path);
      continue;
    }
    queue.restoreNext(kept.next);
    for (const [id, at] of kept.seen) queue.remember(id, at);
    for (const record of kept.messages.values()) queue.place(fromRecord(record));
  }
  for (const queue of queues.values()) queue.tick(now);
}
