// A Scheduler uploads files to a tus server, a few at a time, in the order of their priorities.
// It has no user interface: it dispatches events, and a page shows them.
//
//   change        detail: the Transfer that has changed
//   forget        detail: the Transfer that has left the list
//   unauthorized  the server answered 401; nothing starts until authorize is called
import { Attempt } from './attempt.js';
import { Records } from './records.js';
import { Transfer } from './transfer.js';

export { Transfer };

// priorities are the tiers, in the order in which they start.
export const priorities = ['highest', 'higher', 'high', 'normal', 'low', 'lower', 'lowest'];

// retryDelays are the milliseconds before each repetition of a failed attempt. After the last
// one the transfer is in the state error.
const retryDelays = [1000, 2000, 4000];

export class Scheduler extends EventTarget {
  #tus;
  #endpoint;
  #headers;
  #now;
  #chunkSize;
  #records;
  #slots;
  #queues = new Map(priorities.map((p) => [p, new Set()])); // waiting transfers that may start
  #delayed = new Map(); // waiting transfers that have failed, and the timer that queues them again
  #running = new Map(); // transfers with a slot, and their attempts
  #transfers = new Map(); // all that are listed, by ID
  #byFingerprint = new Map(); // sets of them: a cancelled one may share its file with a later one
  #lastID = 0;
  #holds = 0; // while above 0 nothing starts: orders to many are under way
  #unauthorized = false;

  // tus is the module tus-js-client, and endpoint the URL at which uploads are created. headers
  // returns the headers of a request, slots is how many files are sent at once, now returns
  // milliseconds, and chunkSize is in bytes.
  constructor({ tus, endpoint, headers = () => ({}), slots = 3, now = () => performance.now(), chunkSize }) {
    super();
    this.#tus = tus;
    this.#endpoint = endpoint;
    this.#headers = headers;
    this.#now = now;
    this.#chunkSize = chunkSize;
    this.#slots = slots;
    this.#records = new Records(tus.defaultOptions.urlStorage, endpoint);
  }

  get transfers() {
    return [...this.#transfers.values()];
  }

  get slots() {
    return this.#slots;
  }

  // Fewer slots take effect as running transfers end. What is not an integer above 0 changes nothing.
  set slots(n) {
    if (!Number.isInteger(n) || n < 1) {
      return;
    }
    this.#slots = n;
    this.#fill();
  }

  // restore lists the uploads that an earlier page has left. They are paused, until their files
  // are chosen again.
  async restore() {
    for (const r of await this.#records.unfinished()) {
      this.#list({
        name: r.metadata.filename, size: r.size, fingerprint: r.fingerprint, url: r.uploadUrl, state: 'paused',
        priority: r.priority, accepted: r.accepted, sent: r.accepted,
      });
    }
  }

  // add queues a file and returns its transfer. A file that is listed already is not listed
  // again: if its transfer waits for the file it continues, and otherwise nothing happens.
  async add(file, { priority = 'normal' } = {}) {
    const fingerprint = await this.#fingerprint(file);
    const url = await this.#records.urlOf(fingerprint);
    const listed = [...(this.#byFingerprint.get(fingerprint) ?? [])].find((t) => t.state !== 'cancelled');
    if (listed) {
      if (listed.needsFile) {
        this.#continue(listed, file);
      }
      return listed;
    }
    const t = this.#list({ name: file.name, size: file.size, fingerprint, file, url, priority, state: 'waiting' });
    this.#enqueue(t);
    return t;
  }

  // chooseAgain continues a transfer with its file. A file of another name, size or time of
  // modification is refused: it returns false, and the message of the transfer has the reason.
  async chooseAgain(t, file) {
    if (!t.needsFile) {
      return false;
    }
    if ((await this.#fingerprint(file)) !== t.fingerprint) {
      t.message = difference(t, file);
      this.#changed(t);
      return false;
    }
    this.#continue(t, file);
    return true;
  }

  // The orders return whether the state of the transfer allowed them.

  pause(t) {
    return this.#move(t, 'paused');
  }

  resume(t) {
    return t.state === 'paused' && this.#move(t, 'waiting');
  }

  // retry starts a transfer again that has failed or was cancelled.
  retry(t) {
    return (t.state === 'error' || t.state === 'cancelled') && this.#again(t);
  }

  // cancel ends a transfer, and removes what the server has of it.
  cancel(t) {
    const { url } = t;
    t.url = null;
    if (!this.#move(t, 'cancelled')) {
      t.url = url;
      return false;
    }
    if (url) {
      this.#discard(t, url);
    }
    return true;
  }

  // forget removes a transfer from the list that has succeeded or was cancelled.
  forget(t) {
    const ended = t.state === 'succeeded' || t.state === 'cancelled';
    if (ended && this.#transfers.delete(t.id)) {
      const same = this.#byFingerprint.get(t.fingerprint);
      same.delete(t);
      if (same.size === 0) {
        this.#byFingerprint.delete(t.fingerprint);
      }
      this.dispatchEvent(new CustomEvent('forget', { detail: t }));
    }
    return ended;
  }

  // setPriority moves a transfer to another tier. One that is running keeps its slot.
  setPriority(t, priority) {
    if (this.#queues.get(t.priority).delete(t)) {
      this.#queues.get(priority).add(t);
    }
    t.priority = priority;
    if (t.url) {
      this.#records.save(t);
    }
    this.#changed(t);
  }

  pauseAll() {
    this.#each((t) => this.pause(t));
  }

  resumeAll() {
    this.#each((t) => this.resume(t));
  }

  retryAll() {
    this.#each((t) => t.state === 'error' && this.retry(t));
  }

  forgetAll() {
    this.#each((t) => this.forget(t));
  }

  // authorize continues after an answer 401: headers returns others now.
  authorize() {
    this.#unauthorized = false;
    this.#fill();
  }

  // stats returns how many transfers are in each state, and of those that are not cancelled the
  // bytes, the bytes that were sent, the bytes per second and the seconds that are left.
  stats() {
    const now = this.#now();
    const states = { waiting: 0, running: 0, paused: 0, succeeded: 0, error: 0, cancelled: 0 };
    const all = { states, size: 0, sent: 0, rate: 0, secondsLeft: 0 };
    let left = 0;
    for (const t of this.#transfers.values()) {
      states[t.state]++;
      if (t.state === 'cancelled') {
        continue;
      }
      all.size += t.size;
      all.sent += t.sent;
      all.rate += t.rate(now);
      left += t.state === 'waiting' || t.state === 'running' ? t.size - t.sent : 0;
    }
    all.secondsLeft = left === 0 ? 0 : left / all.rate;
    return all;
  }

  #fingerprint(file) {
    return this.#tus.defaultOptions.fingerprint(file, { endpoint: this.#endpoint });
  }

  #list(fields) {
    const t = new Transfer({ id: ++this.#lastID, chunkSize: this.#chunkSize, ...fields });
    this.#transfers.set(t.id, t);
    if (!this.#byFingerprint.has(t.fingerprint)) {
      this.#byFingerprint.set(t.fingerprint, new Set());
    }
    this.#byFingerprint.get(t.fingerprint).add(t);
    this.#changed(t);
    return t;
  }

  #changed(t) {
    this.dispatchEvent(new CustomEvent('change', { detail: t }));
  }

  #continue(t, file) {
    t.file = file;
    this.#again(t);
  }

  #again(t) {
    t.failures = 0;
    t.message = '';
    return this.#move(t, 'waiting');
  }

  // each gives an order to all transfers. Nothing starts before the last has it.
  #each(order) {
    this.#holds++;
    for (const t of this.transfers) {
      order(t);
    }
    this.#holds--;
    this.#fill();
  }

  // move changes the state of a transfer, if that is allowed. It takes the transfer out of its
  // queue, its delay or its slot first, so that none of them can be leaked. One that waits is
  // queued after a delay in milliseconds.
  #move(t, state, delay = 0) {
    if (!t.can(state)) {
      return false;
    }
    this.#queues.get(t.priority).delete(t);
    clearTimeout(this.#delayed.get(t));
    this.#delayed.delete(t);
    const attempt = this.#running.get(t);
    this.#running.delete(t);
    t.state = state;
    if (state === 'cancelled') {
      t.accepted = 0;
    }
    t.sent = state === 'succeeded' ? t.size : t.accepted;
    attempt?.stop();
    this.#changed(t);
    if (delay > 0) {
      this.#delayed.set(t, setTimeout(() => this.#enqueue(t), delay));
    } else if (state === 'waiting') {
      this.#enqueue(t);
    }
    this.#fill();
    return true;
  }

  #enqueue(t) {
    this.#delayed.delete(t);
    this.#queues.get(t.priority).add(t);
    this.#fill();
  }

  // fill starts the first waiting transfers while slots are free.
  #fill() {
    while (this.#holds === 0 && !this.#unauthorized && this.#running.size < this.#slots) {
      const queue = priorities.map((p) => this.#queues.get(p)).find((q) => q.size > 0);
      if (!queue) {
        return;
      }
      const [t] = queue;
      queue.delete(t);
      this.#start(t);
    }
  }

  #start(t) {
    t.state = 'running';
    t.begins();
    const current = () => this.#running.get(t) === attempt;
    const attempt = new Attempt(
      {
        Upload: this.#tus.Upload, file: t.file, url: t.url, endpoint: this.#endpoint, chunkSize: t.chunkSize,
        headers: this.#headers, metadata: { filename: t.name, filetype: t.file.type },
      },
      {
        url: (url) => this.#created(t, url, attempt),
        progress: (sent, confirmed) => {
          const before = t.accepted;
          t.progresses(this.#now(), sent, confirmed);
          if (t.accepted !== before) {
            this.#records.save(t);
          }
          this.#changed(t);
        },
        success: () => current() && this.#succeed(t),
        failure: (failure) => current() && this.#fail(t, failure),
      },
    );
    this.#running.set(t, attempt);
    this.#changed(t);
    attempt.start();
  }

  // created notes the URL of an upload. If the attempt was stopped meanwhile, the upload is kept
  // for the next attempt if that can use it.
  #created(t, url, attempt) {
    const current = this.#running.get(t) === attempt;
    const useful = t.url === null && !this.#running.has(t) && (t.state === 'paused' || t.state === 'waiting');
    if (!current && !useful) {
      if (url !== t.url) {
        this.#discard(t, url);
      }
      return;
    }
    if (t.url !== null && t.url !== url) {
      this.#records.forget(t.fingerprint, t.url); // the server does not have it any more
      t.accepted = 0;
    }
    t.url = url;
    this.#records.save(t);
  }

  #succeed(t) {
    t.accepted = t.size;
    t.failures = 0;
    t.message = '';
    this.#move(t, 'succeeded');
    this.#records.save(t);
  }

  #fail(t, { status, temporary, unreadable, busy, message }) {
    if (status === 401) {
      this.#unauthorized = true;
      this.#move(t, 'waiting');
      this.dispatchEvent(new CustomEvent('unauthorized'));
      return;
    }
    t.message = message;
    if (busy > 0) { // with other uploads, for any time: this is no failure
      this.#move(t, 'waiting', busy * 1000);
      return;
    }
    t.failures++;
    if (unreadable) {
      t.file = null;
    }
    if (!temporary || t.failures > retryDelays.length) {
      this.#move(t, 'error');
      return;
    }
    this.#move(t, 'waiting', retryDelays[t.failures - 1]);
  }

  // discard removes an upload from the server. If that fails, the server removes it when it
  // expires.
  #discard(t, url) {
    this.#records.forget(t.fingerprint, url);
    this.#tus.Upload.terminate(url, { headers: this.#headers(), retryDelays: null }).catch(() => {});
  }
}

// difference says what distinguishes a file from that of a transfer.
function difference(t, file) {
  if (file.name !== t.name) {
    return `${file.name} is another file. Choose ${t.name}.`;
  }
  if (file.size !== t.size) {
    return `This ${file.name} has ${file.size} bytes, and the upload has ${t.size}. Choose the same file, or cancel this upload.`;
  }
  return `This ${file.name} was changed since the upload began. Choose the same file, or cancel this upload.`;
}
