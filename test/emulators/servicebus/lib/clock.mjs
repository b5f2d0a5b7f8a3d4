/** Clock is the time of the emulator, in ms: the machine's, plus what it was moved by. */
export class Clock {
  offset = 0;

  now() {
    return Date.now() + this.offset;
  }
}
