// A Transfer is one file on its way to the server: its state, its chunks and its rate. Only the
// scheduler changes it; a page reads it.

// chunkMin is the size of a chunk in bytes, and chunksMax how many chunks a file has at most:
// larger files have larger chunks.
const chunkMin = 8 << 20;
const chunksMax = 10_000;

// The rate is that of the last rateWindow milliseconds, measured at most each sampleEvery.
const rateWindow = 5_000;
const sampleEvery = 200;

// moves lists the states that may follow each state.
const moves = {
  waiting: ['running', 'paused', 'cancelled'],
  running: ['waiting', 'succeeded', 'error', 'paused', 'cancelled'],
  paused: ['waiting', 'cancelled'],
  error: ['waiting', 'cancelled'],
  cancelled: ['waiting'],
  succeeded: [],
};

export class Transfer {
  id;
  name;
  size; // bytes
  fingerprint; // of the file, as tus-js-client makes it
  file = null; // null until the file has been chosen again after a reload
  priority;
  state;
  attempt = 0; // number of the current or the last attempt, from 1
  failures = 0; // failed attempts since the server confirmed a new byte
  accepted = 0; // bytes that the server has confirmed
  sent = 0; // bytes that have left, including those that the server has not confirmed
  url = null; // of the upload at the server; null before its creation
  message = ''; // why the last attempt failed, or why the file has to be chosen again

  #samples = []; // [time in ms, bytes sent], oldest first

  constructor(fields) {
    Object.assign(this, fields);
    this.chunkSize = Math.max(fields.chunkSize ?? chunkMin, Math.ceil(this.size / chunksMax));
  }

  // can reports whether an order may move the transfer to a state now.
  can(state) {
    return moves[this.state].includes(state) && (state !== 'waiting' || this.file !== null);
  }

  // needsFile reports whether the transfer cannot continue before its file is chosen again.
  get needsFile() {
    return this.file === null && (this.state === 'paused' || this.state === 'error');
  }

  get chunkCount() {
    return Math.max(1, Math.ceil(this.size / this.chunkSize));
  }

  // chunk returns the state of the chunk with an index from 0: done if the server has it,
  // uploading, error if its last request failed, or pending.
  chunk(index) {
    const start = index * this.chunkSize;
    const end = Math.min(this.size, start + this.chunkSize);
    if (this.state === 'succeeded' || (end <= this.accepted && this.size > 0)) {
      return 'done';
    }
    if (this.state === 'running' && start < Math.max(this.sent, this.accepted + 1)) {
      return 'uploading';
    }
    if (this.failures > 0 && start <= this.accepted) {
      return 'error';
    }
    return 'pending';
  }

  // chunks returns how many chunks are in each state. It looks at the few chunks that are
  // neither done nor pending only.
  chunks() {
    const counts = { pending: 0, uploading: 0, done: 0, error: 0 };
    counts.done = this.state === 'succeeded' ? this.chunkCount : Math.floor(this.accepted / this.chunkSize);
    let index = counts.done;
    for (; index < this.chunkCount; index++) {
      const state = this.chunk(index);
      if (state === 'pending') {
        break;
      }
      counts[state]++;
    }
    counts.pending = this.chunkCount - index;
    return counts;
  }

  // rate returns the bytes per second of the last seconds, 0 unless the transfer is running.
  rate(now) {
    if (this.state !== 'running') {
      return 0;
    }
    while (this.#samples.length > 1 && this.#samples[1][0] <= now - rateWindow) {
      this.#samples.shift();
    }
    const [first] = this.#samples;
    return first && now - first[0] >= sampleEvery ? Math.max(0, (this.sent - first[1]) * 1000) / (now - first[0]) : 0;
  }

  // secondsLeft returns the time until the end at the present rate, or Infinity.
  secondsLeft(now) {
    return (this.size - this.sent) / this.rate(now);
  }

  // begins starts an attempt at the bytes that the server had last.
  begins() {
    this.attempt++;
    this.sent = this.accepted;
    this.#samples = [];
  }

  // progresses notes how far an attempt has come. confirmed are bytes that the server has.
  progresses(now, sent, confirmed) {
    if (confirmed !== undefined) {
      if (confirmed > this.accepted) {
        this.failures = 0;
        this.message = '';
      }
      this.accepted = confirmed;
    }
    if (this.#samples.length === 0) {
      this.#samples.push([now, sent]); // what an earlier attempt has sent is not part of the rate
    } else if (now - this.#samples.at(-1)[0] >= sampleEvery) {
      this.#samples.push([now, sent]);
    }
    this.sent = sent;
  }
}
