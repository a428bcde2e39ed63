// The value is a promise of the rules that a scheduler broke: it gets orders at random, over a
// client of tus whose requests succeed, fail and take their time at random.
(async (seed, rounds) => {
  const { Scheduler, priorities } = await import('/scheduler.js');
  let state = seed;
  const random = (n) => { // the generator of Park and Miller (1988)
    state = (state * 48271) % 2147483647;
    return state % n;
  };
  const pick = (list) => list[random(list.length)];
  const { port1, port2 } = new MessageChannel(); // timers wait 4 ms at least
  const turns = [];
  port1.onmessage = () => turns.shift()();
  const turn = () => new Promise((done) => {
    turns.push(done);
    port2.postMessage(null);
  });

  const setTimer = window.setTimeout;
  window.setTimeout = (call, ms) => setTimer(call, ms / 1000); // delays of retries are seconds

  let active = 0; // uploads that were started, and have neither ended nor been aborted
  let made = 0; // uploads that the server has
  class Upload {
    static async terminate() { made--; }
    #options;
    #aborted = false;
    constructor(file, options) { this.#options = options; this.url = options.uploadUrl; }
    abort() { this.#aborted = true; }
    async start() {
      active++;
      await this.#run();
      active--;
    }
    async #run() {
      const o = this.#options;
      const request = (method, offset) => ({ getMethod: () => method, setHeader() {}, getHeader: () => String(offset) });
      const answer = async (req, status) => {
        for (let n = random(4); n > 0; n--) { await turn(); }
        if (!this.#aborted) { o.onAfterResponse(req, { getStatus: () => status }); }
        return status;
      };
      try {
        if (!this.url) {
          const req = request('POST');
          o.onBeforeRequest(req);
          if (await answer(req, pick([201, 201, 201, 503])) !== 201) { throw new Error('503'); }
          this.url = `/files/${++Upload.last}`;
          made++;
          o.onUploadUrlAvailable();
        }
        for (let at = 0; at < 3 && !this.#aborted; at++) {
          const req = request('PATCH', at);
          o.onBeforeRequest(req);
          if (await answer(req, pick([204, 204, 204, 503])) !== 204) { throw new Error('503'); }
          if (!this.#aborted) { o.onChunkComplete(1, at + 1); }
        }
        if (!this.#aborted) { o.onSuccess(); }
      } catch (err) {
        if (!this.#aborted) { o.onError(err); }
      }
    }
  }
  Upload.last = 0;
  const tus = {
    Upload,
    defaultOptions: {
      fingerprint: async (file) => `${file.name}-/files/`,
      urlStorage: {
        findAllUploads: async () => [], findUploadsByFingerprint: async () => [], addUpload: async () => {},
        removeUpload: async () => {},
      },
    },
  };
  const broken = new Set();
  const scheduler = new Scheduler({ tus, endpoint: '/files/', chunkSize: 1 });
  const before = new Map();
  scheduler.addEventListener('change', ({ detail: t }) => {
    const from = before.get(t);
    if (t.state === 'running' && from !== 'running' && from !== 'waiting') { broken.add(`one that was ${from} runs`); }
    before.set(t, t.state);
  });
  const check = () => {
    const { states } = scheduler.stats();
    if (states.running > scheduler.slots && !fewer) { broken.add(`${states.running} run on ${scheduler.slots} slots`); }
    const ready = scheduler.transfers.filter((t) => t.state === 'waiting' && t.failures === 0).length;
    if (ready > 0 && states.running < scheduler.slots) { broken.add(`${ready} wait beside a free slot`); }
  };
  let fewer = false; // slots were taken away, which takes effect as transfers end
  for (let i = 0; i < rounds; i++) {
    const t = pick(scheduler.transfers.length > 0 ? scheduler.transfers : [null]);
    const order = random(10);
    if (order < 2 || t === null) {
      await scheduler.add(new File(['abc'], `${i}`), { priority: pick(priorities) });
    } else if (order < 7) {
      scheduler[pick(['pause', 'resume', 'cancel', 'retry', 'forget'])](t);
    } else if (order < 8) {
      scheduler.setPriority(t, pick(priorities));
    } else if (order < 9) {
      scheduler[pick(['pauseAll', 'resumeAll', 'retryAll', 'forgetAll'])]();
    } else {
      const slots = 1 + random(4);
      fewer = fewer || slots < scheduler.slots;
      scheduler.slots = slots;
    }
    check();
    if (random(2)) { await turn(); }
    fewer = fewer && scheduler.stats().states.running > scheduler.slots;
  }
  // At the end, what is left goes on until it has succeeded.
  for (let i = 0; i < 100_000 && scheduler.transfers.some((t) => t.state !== 'succeeded'); i++) {
    scheduler.transfers.forEach((t) => (t.failures > 0 && scheduler.pause(t)) || scheduler.retry(t));
    scheduler.resumeAll();
    check();
    await turn();
  }
  const { states } = scheduler.stats();
  for (let i = 0; i < 1000 && active > 0; i++) { await turn(); }
  if (states.succeeded !== scheduler.transfers.length) { broken.add(`the states at the end are ${JSON.stringify(states)}`); }
  if (active > 0) { broken.add(`${active} uploads run at the end`); }
  window.setTimeout = setTimer;
  return { broken: [...broken], succeeded: states.succeeded, last: Upload.last, made };
})
