// Tests of the scheduler in Node.js: the page's modules with the real tus-js-client, and with a
// server, files, a storage and a clock that belong to the test. Nothing here waits: the test
// answers requests and lets time pass.
//
//   node scheduler_test.mjs SEED     in a copy of the page's files that are ES modules for Node.js
import assert from 'node:assert/strict';
import test from 'node:test';

const [seed] = process.argv.slice(2);

const chunkSize = 100; // bytes
const endpoint = 'http://server/files/';

// The clock replaces the timers before the modules are loaded.
const clock = { now: 0, timers: new Map(), lastID: 0 };
const real = { setImmediate };
globalThis.setTimeout = (run, delay) => {
  clock.timers.set(++clock.lastID, { at: clock.now + delay, run });
  return clock.lastID;
};
globalThis.clearTimeout = (id) => clock.timers.delete(id);

// pass lets milliseconds pass, and runs the timers that are due, the earliest first.
async function pass(ms) {
  const end = clock.now + ms;
  for (;;) {
    const due = [...clock.timers].filter(([, t]) => t.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
    if (!due) {
      break;
    }
    const [id, timer] = due;
    clock.timers.delete(id);
    clock.now = timer.at;
    timer.run();
    await settle();
  }
  clock.now = end;
}

// settle lets all promises run. None of them waits for anything outside of the test.
async function settle() {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => real.setImmediate(resolve));
  }
}

await import('./vendor/tus.min.js');
const { Scheduler, priorities } = await import('./scheduler.js');
const { tus } = globalThis;

// random returns a generator of integers below n (xorshift32, Marsaglia 2003).
function random(from) {
  let x = from >>> 0 || 1;
  return (n) => {
    x ^= x << 13;
    x >>>= 0;
    x ^= x >>> 17;
    x ^= x << 5;
    x >>>= 0;
    return x % n;
  };
}

// A Server is the state of a tus server, and the requests that it has not answered.
class Server {
  uploads = new Map(); // by URL: size, offset and name
  finished = []; // names of complete uploads
  pending = [];
  log = []; // methods of all requests
  received = 0; // bytes
  abandoned = new Set(); // URLs of uploads that the client does not know, or could not remove
  #lastID = 0;

  createRequest(method, url) {
    const headers = {};
    let progress = () => {};
    const request = {
      method, url, headers, aborted: false, body: null,
      getMethod: () => method,
      getURL: () => url,
      setHeader: (name, value) => { headers[name] = value; },
      getHeader: (name) => headers[name],
      setProgressHandler: (handler) => { progress = handler; },
      progress: (n) => progress(n),
      getUnderlyingObject: () => null,
      abort: () => {
        request.aborted = true;
        this.pending = this.pending.filter((r) => r !== request);
        return Promise.resolve();
      },
      send: (body) => new Promise((resolve, reject) => {
        request.body = body;
        this.log.push(method);
        this.pending.push(request);
        request.answer = (status, head = {}) => resolve({
          getStatus: () => status, getHeader: (name) => head[name.toLowerCase()], getBody: () => '', getUnderlyingObject: () => null,
        });
        request.lose = () => reject(new Error('the connection has broken'));
      }),
    };
    return request;
  }

  // apply does what a request asks for, and returns the answer.
  apply({ method, url, headers, body }) {
    const upload = this.uploads.get(url);
    if (method === 'POST') {
      const location = `${endpoint}${++this.#lastID}`;
      const deferred = headers['Upload-Defer-Length'] === '1';
      const size = deferred ? null : Number(headers['Upload-Length']);
      this.uploads.set(location, { size, offset: 0, name: name(headers) });
      this.#complete(location);
      return [201, { location }];
    }
    if (!upload) {
      return [404];
    }
    if (method === 'HEAD') {
      const length = upload.size === null ? { 'upload-defer-length': '1' } : { 'upload-length': `${upload.size}` };
      return [200, { 'upload-offset': `${upload.offset}`, ...length }];
    }
    if (method === 'DELETE') {
      this.uploads.delete(url);
      return [204];
    }
    if (Number(headers['Upload-Offset']) !== upload.offset) {
      return [409];
    }
    const complete = upload.size === upload.offset;
    upload.size ??= Number(headers['Upload-Length']);
    upload.offset += body.size;
    this.received += body.size;
    if (!complete) {
      this.#complete(url);
    }
    return [204, { 'upload-offset': `${upload.offset}` }];
  }

  #complete(url) {
    const { size, offset, name } = this.uploads.get(url);
    if (size === offset) {
      this.finished.push(name);
    }
  }

  // serve answers a request as it asks for.
  async serve(request = this.pending[0]) {
    this.take(request);
    request.answer(...this.apply(request));
    await settle();
  }

  // refuse answers a request by a status, and does nothing else.
  async refuse(status, request = this.pending[0], head = {}) {
    this.take(request);
    request.answer(status, head);
    await settle();
  }

  // lose breaks the connection of a request, before or after the server has done what it asks for.
  async lose(done, request = this.pending[0]) {
    this.take(request);
    if (done) {
      const [, head] = this.apply(request);
      this.abandoned.add(request.method === 'POST' ? head.location : null);
    }
    request.lose();
    await settle();
  }

  // take removes a request from those that are pending.
  take(request) {
    this.pending = this.pending.filter((r) => r !== request);
    if (request.method === 'DELETE') {
      this.abandoned.add(request.url); // unless it is applied
    }
  }

  methods(method) {
    return this.log.filter((m) => m === method).length;
  }
}

function name(headers) {
  const [, encoded] = headers['Upload-Metadata'].match(/filename ([^,]*)/);
  return Buffer.from(encoded, 'base64').toString();
}

// A file without content: only sizes matter here.
function file(name, size) {
  return {
    name, size, type: 'text/plain', lastModified: 1,
    slice: (start, end) => ({ size: Math.min(end, size) - start, arrayBuffer: async () => new ArrayBuffer(0) }),
  };
}

// A storage with the methods of tus-js-client's.
function storage() {
  const entries = new Map();
  let last = 0;
  const counts = { searches: 0 }; // how often all entries were looked through
  const list = (prefix) => {
    counts.searches++;
    return [...entries].filter(([key]) => key.startsWith(prefix))
      .map(([key, text]) => ({ ...JSON.parse(text), urlStorageKey: key }));
  };
  return {
    counts,
    entries,
    findAllUploads: async () => list('tus::'),
    findUploadsByFingerprint: async (fingerprint) => list(`tus::${fingerprint}::`),
    removeUpload: async (key) => { entries.delete(key); },
    addUpload: async (fingerprint, upload) => {
      const key = `tus::${fingerprint}::${++last}`;
      entries.set(key, JSON.stringify(upload));
      return key;
    },
  };
}

function scheduler(server, { slots = 3, urlStorage = storage(), headers } = {}) {
  class Upload extends tus.Upload {
    constructor(source, options) {
      super(source, { ...options, httpStack: server });
    }

    static terminate(url, options) {
      return tus.Upload.terminate(url, { ...options, httpStack: server });
    }
  }
  const client = { Upload, defaultOptions: { ...tus.defaultOptions, urlStorage } };
  return new Scheduler({ tus: client, endpoint, slots, headers, chunkSize, now: () => clock.now });
}

// requests returns the requests with data that are under way.
const requests = (server) => server.pending.filter((r) => r.method === 'PATCH');

test('files start in the order of priorities, and of arrival within one', async () => {
  const server = new Server();
  const s = scheduler(server, { slots: 1 });
  for (const [name, priority] of [['a'], ['b', 'low'], ['c', 'highest'], ['d'], ['e', 'highest'], ['f', 'low']]) {
    await s.add(file(name, 10), { priority });
  }
  s.setPriority(s.transfers.find((t) => t.name === 'f'), 'high');
  while (server.pending.length > 0) {
    await server.serve();
    await settle();
  }
  assert.deepEqual(server.finished, ['a', 'c', 'e', 'f', 'd', 'b']);
});

test('a reload keeps the priority of a paused file, and of one that has not been chosen again', async () => {
  const server = new Server();
  const urlStorage = storage();
  let s = scheduler(server, { urlStorage });
  const t = await s.add(file('a', 250));
  await settle();
  await server.serve(); // POST
  s.pause(t);
  for (const priority of ['high', 'lowest']) {
    s.setPriority(s.transfers[0], priority);
    await settle();
    s = scheduler(server, { urlStorage });
    await s.restore();
    assert.deepEqual(s.transfers.map(({ name, priority }) => [name, priority]), [['a', priority]]);
  }
});

test('a file is added and sent in a time that does not depend on how many there are', async () => {
  const server = new Server();
  const urlStorage = storage();
  const s = scheduler(server, { slots: 1, urlStorage });
  let reads = 0;
  const t = await s.add(file('a', 10));
  const { fingerprint } = t;
  Object.defineProperty(t, 'fingerprint', { get: () => { reads++; return fingerprint; } });
  await settle();
  s.pause(t);
  reads = 0;
  for (let i = 0; i < 100; i++) {
    await s.add(file(`${i}`, 10));
  }
  assert.equal(reads, 0, 'other files look at it');
  s.resume(t);
  while (server.pending.length > 0) {
    await server.serve();
    await settle();
  }
  assert.equal(server.finished.length, 101);
  assert.equal(urlStorage.counts.searches, 1);
  assert.equal(urlStorage.entries.size, 101);
  const again = await s.add(file('a', 10));
  assert.equal(again, t);
});

test('a failure is repeated after 1, 2 and 4 s, and takes no slot meanwhile', async () => {
  const server = new Server();
  const s = scheduler(server, { slots: 1 });
  const t = await s.add(file('a', 250));
  const other = await s.add(file('b', 10));
  await settle();
  await server.serve(); // POST
  await server.serve(); // the first chunk
  for (const delay of [1000, 2000, 4000]) {
    await server.refuse(503);
    assert.equal(t.state, 'waiting');
    assert.deepEqual([t.chunk(0), t.chunk(1), t.chunk(2)], ['done', 'error', 'pending']);
    while (server.pending.length > 0) {
      await server.serve(); // b has the slot
    }
    assert.equal(other.state, 'succeeded');
    await pass(delay - 1);
    assert.equal(t.state, 'waiting');
    await pass(1);
    assert.equal(t.state, 'running');
    await server.serve(); // HEAD
    assert.equal(t.chunk(1), 'uploading');
  }
  await server.refuse(503);
  assert.equal(t.state, 'error');
  assert.match(t.message, /503/);
  assert.equal(clock.timers.size, 0);
  assert.equal(t.attempt, 4);

  s.retry(t);
  await settle();
  while (server.pending.length > 0) {
    await server.serve();
  }
  assert.equal(t.state, 'succeeded');
  assert.equal(server.received, 260);
  assert.deepEqual(t.chunks(), { pending: 0, uploading: 0, done: 3, error: 0 });
});

test('a server that is busy for however long, and says when to ask again, makes no failure', async () => {
  const server = new Server();
  const s = scheduler(server);
  const t = await s.add(file('a', 100));
  await settle();
  await server.serve(); // POST
  for (let i = 0; i < 10; i++) {
    await server.refuse(503, server.pending[0], { 'retry-after': '3' });
    assert.deepEqual([t.state, t.failures], ['waiting', 0]);
    assert.match(t.message, /503/);
    await pass(2999);
    assert.equal(t.state, 'waiting');
    await pass(1);
    await server.serve(); // HEAD
  }
  await server.serve();
  assert.deepEqual([t.state, t.failures, t.message], ['succeeded', 0, '']);
});

test('failures count anew after each chunk that arrives', async () => {
  const server = new Server();
  const s = scheduler(server);
  const t = await s.add(file('a', 300));
  await settle();
  await server.serve(); // POST
  for (let i = 0; i < 3; i++) {
    await server.refuse(500);
    await pass(1000);
    await server.serve(); // HEAD
    assert.equal(t.failures, 1);
    await server.serve(); // a chunk
  }
  assert.deepEqual([t.state, t.failures, t.message], ['succeeded', 0, '']);
});

test('a status that cannot get better is an error at once', async () => {
  const server = new Server();
  const s = scheduler(server);
  const t = await s.add(file('a', 10));
  await settle();
  await server.refuse(413);
  assert.equal(t.state, 'error');
});

test('nothing starts after 401 until authorize', async () => {
  const server = new Server();
  let token = 'first';
  const s = scheduler(server, { slots: 1, headers: () => ({ Authorization: token }) });
  let asked = 0;
  s.addEventListener('unauthorized', () => asked++);
  const a = await s.add(file('a', 10));
  await s.add(file('b', 10));
  await settle();
  await server.refuse(401);
  assert.equal(asked, 1);
  assert.deepEqual([a.state, a.failures, server.pending.length], ['waiting', 0, 0]);
  token = 'second';
  s.authorize();
  await settle();
  assert.equal(server.pending[0].headers.Authorization, 'second');
  while (server.pending.length > 0) {
    await server.serve();
  }
  assert.equal(s.stats().states.succeeded, 2);
});

test('rates and times are those of the last seconds, per file and over all', async () => {
  const server = new Server();
  const s = scheduler(server, { slots: 2 });
  const a = await s.add(file('a', 1500));
  await s.add(file('b', 1500));
  await settle();
  await server.serve(); // two POSTs
  await server.serve();
  for (let i = 0; i < 9; i++) { // both send 100 bytes per second
    await pass(1000);
    await server.serve();
    await server.serve();
  }
  assert.equal(a.rate(clock.now), 100);
  assert.equal(a.secondsLeft(clock.now), 6);
  const { size, sent, rate, secondsLeft } = s.stats();
  assert.deepEqual({ size, sent, rate, secondsLeft }, { size: 3000, sent: 1800, rate: 200, secondsLeft: 6 });
  for (let i = 0; i < 3; i++) { // a slows down to 50 bytes per second
    await pass(2000);
    await server.serve(requests(server).find((r) => r.url === a.url));
  }
  assert.equal(a.rate(clock.now), 50);
  s.pause(a);
  await pass(2000);
  s.resume(a);
  await settle();
  await server.serve(server.pending.find((r) => r.method === 'HEAD'));
  await pass(1000);
  await server.serve(requests(server).find((r) => r.url === a.url));
  assert.equal(a.rate(clock.now), 100); // without the pause
  await pass(60_000);
  assert.equal(a.rate(clock.now), 0);
  s.pauseAll();
  assert.deepEqual([s.stats().rate, s.stats().secondsLeft], [0, 0]);
});

test('a pause or cancel while the upload is created loses and leaks nothing', async () => {
  const server = new Server();
  const s = scheduler(server, { slots: 1 });
  const a = await s.add(file('a', 10));
  const b = await s.add(file('b', 10));
  await settle();
  s.pause(a);
  await settle();
  assert.deepEqual([a.state, b.state], ['paused', 'running']);
  s.cancel(b);
  await settle();
  await server.serve(); // the creation of a
  await server.serve(); // the creation of b
  assert.equal(server.pending[0].method, 'DELETE');
  await server.serve();
  assert.deepEqual([...server.uploads.values()].map((u) => u.name), ['a']);
  s.resume(a);
  await settle();
  assert.equal(server.pending[0].method, 'HEAD'); // it continues what was created
  s.cancel(a);
  s.retry(a);
  await settle();
  assert.deepEqual(server.pending.map((r) => r.method).sort(), ['DELETE', 'POST']); // and then begins anew
});

test('an empty file arrives once, whatever becomes of the requests for it', async () => {
  const server = new Server();
  const s = scheduler(server);
  const a = await s.add(file('a', 0));
  await settle();
  s.pause(a);
  s.resume(a);
  await settle();
  assert.deepEqual(server.pending.map((r) => r.method), ['POST', 'POST']); // nobody waits for an answer that may not come
  await server.serve();
  await server.lose(true);
  for (let lost = 0; lost < 3; lost++) { // the answer of the server to each kind of request
    await pass(10_000);
    await server.lose(true);
  }
  s.retry(a);
  await settle();
  for (let i = 0; i < 20 && server.pending.length + clock.timers.size > 0; i++) {
    await (server.pending.length > 0 ? server.serve() : pass(10_000));
  }
  assert.equal(a.state, 'succeeded');
  assert.deepEqual(server.finished, ['a']);
});

test('a pause before the first request keeps it from being sent', async () => {
  const server = new Server();
  const s = scheduler(server);
  s.addEventListener('change', ({ detail: t }) => t.state === 'running' && queueMicrotask(() => s.pause(t)));
  const t = await s.add(file('a', 10));
  await settle();
  assert.deepEqual([t.state, server.log], ['paused', []]);
});

test('nothing starts while all are paused', async () => {
  const server = new Server();
  const s = scheduler(server, { slots: 1 });
  for (const name of ['a', 'b', 'c']) {
    await s.add(file(name, 10));
  }
  s.pauseAll();
  assert.deepEqual(s.transfers.map((t) => `${t.state} ${t.attempt}`), ['paused 1', 'paused 0', 'paused 0']);
});

// Orders, answers, failures, reloads and time at random. After each step the slots, the states
// and the requests must agree, and at the end every file that was not cancelled has arrived.
for (let round = 0; round < 40; round++) {
  test(`random orders, seed ${seed}, round ${round}`, async () => {
    const draw = random((Number(BigInt(seed) % 0xffffffffn) + 1) * 2654435761 + round);
    const one = (list) => list[draw(list.length)];
    const server = new Server();
    const urlStorage = storage();
    let slots = 1 + draw(3);
    let most = slots; // of the files that may still run, after slots was larger
    let s = scheduler(server, { slots, urlStorage });
    const files = new Map();
    const steps = [];
    const cancels = []; // names
    // A file starts only if none of a higher priority waits. Files that have failed may wait for their time.
    const attempts = new WeakMap();
    let wrong = '';
    const watch = () => s.addEventListener('change', ({ detail: t }) => {
      if (t.state === 'running' && t.attempt !== attempts.get(t)) {
        attempts.set(t, t.attempt);
        const before = s.transfers.find((o) => o.state === 'waiting' && o.failures === 0
          && priorities.indexOf(o.priority) < priorities.indexOf(t.priority));
        wrong ||= before ? `${t.name} (${t.priority}) starts before ${before.name} (${before.priority})` : '';
      }
    });
    watch();

    // A file that has ended or is paused begins again by an order of its own only.
    const starts = { resume: 'one', retry: 'one', choose: 'one', again: 'any', resumeAll: 'any', retryAll: 'any' };
    const rested = new Map();
    const check = (order, ordered) => {
      for (const t of s.transfers) {
        const started = t.state === 'waiting' || t.state === 'running';
        if (rested.has(t) && started) {
          assert.ok(starts[order] === 'any' || (starts[order] === 'one' && t === ordered), `${t.name} begins after ${order}`);
        }
        started ? rested.delete(t) : rested.set(t, t.state);
      }
      const { states } = s.stats();
      const running = s.transfers.filter((t) => t.state === 'running');
      assert.equal(running.length, states.running);
      assert.ok(running.length <= most, `${running.length} run in ${slots} slots`);
      most = Math.max(slots, running.length);
      const ready = states.waiting - clock.timers.size;
      assert.ok(ready >= 0, `${clock.timers.size} timers for ${states.waiting} that wait`);
      assert.ok(ready === 0 || running.length >= slots, `${ready} wait, and ${running.length} of ${slots} slots are taken`);
      assert.ok(requests(server).length <= running.length, 'requests of files that do not run');
      assert.ok(server.pending.every((r) => r.method !== 'HEAD' || running.some((t) => t.url === r.url)));
      assert.equal(wrong, '');
      for (const t of s.transfers) {
        const counts = { pending: 0, uploading: 0, done: 0, error: 0 };
        for (let i = 0; i < t.chunkCount; i++) {
          counts[t.chunk(i)]++;
        }
        assert.deepEqual(t.chunks(), counts);
        assert.ok(t.accepted <= t.sent && t.sent <= t.size, `${t.accepted}, ${t.sent}, ${t.size}`);
        const upload = server.uploads.get(t.url);
        assert.ok(!upload || t.accepted <= upload.offset, `the server has ${upload?.offset} of ${t.accepted}`);
      }
    };

    const reload = async () => {
      const listed = (ended) => s.transfers.filter((t) => ended === (t.state === 'cancelled' || t.state === 'succeeded'))
        .map((t) => t.name);
      const [ended, unfinished] = [listed(true), listed(false)];
      for (const r of server.pending) {
        server.take(r); // without an answer
      }
      clock.timers.clear();
      s = scheduler(server, { slots, urlStorage });
      watch();
      await s.restore();
      for (const t of s.transfers) {
        assert.ok(!ended.includes(t.name) || unfinished.includes(t.name), `${t.name} is listed after its end`);
      }
    };

    const orders = {
      add: async () => {
        const f = file(`f${files.size}`, draw(5) * 70);
        files.set(f.name, f);
        await s.add(f, { priority: one(priorities) });
      },
      again: async () => files.size > 0 && s.add(one([...files.values()])),
      choose: async (t) => t && s.chooseAgain(t, one([files.get(t.name), file(t.name, 7)])),
      pause: (t) => t && s.pause(t),
      resume: (t) => t && s.resume(t),
      retry: (t) => t && s.retry(t),
      cancel: (t) => t && s.cancel(t) && cancels.push(t.name),
      forget: (t) => t && s.forget(t),
      priority: (t) => t && s.setPriority(t, one(priorities)),
      pauseAll: () => s.pauseAll(),
      resumeAll: () => s.resumeAll(),
      retryAll: () => s.retryAll(),
      slots: () => {
        slots = 1 + draw(3);
        most = Math.max(most, slots);
        s.slots = slots;
      },
      time: () => pass(draw(3000)),
      reload: () => draw(4) === 0 && reload(),
    };
    const answers = [
      () => server.serve(one(server.pending)),
      () => server.serve(one(server.pending)),
      () => server.serve(one(server.pending)),
      () => server.refuse(one([423, 500, 503, 403]), one(server.pending)),
      () => server.lose(draw(2) === 0, one(server.pending)),
      () => { const r = one(server.pending); r.progress(draw((r.body?.size ?? 0) + 1)); },
    ];
    try {
      for (let i = 0; i < 150; i++) {
        const answer = server.pending.length > 0 && draw(2) === 0;
        const order = answer ? draw(answers.length) : draw(4) === 0 ? 'add' : one(Object.keys(orders));
        const t = s.transfers.length > 0 ? one(s.transfers) : undefined;
        steps.push(answer ? `answer ${order}` : `${order} ${t?.name}`);
        await (answer ? answers[order]() : orders[order](t));
        await settle();
        check(answer ? 'answer' : order, t);
      }
      // Everything that was not cancelled arrives.
      for (let i = 0; i < 1000; i++) {
        for (const t of s.transfers) {
          if (t.needsFile) {
            await s.chooseAgain(t, files.get(t.name));
          }
        }
        s.resumeAll();
        s.retryAll();
        await settle();
        if (server.pending.length > 0) {
          await server.serve(one(server.pending));
        } else {
          await pass(10_000);
        }
        check('resumeAll');
        if (server.pending.length + clock.timers.size === 0 && s.stats().states.waiting === 0) {
          break;
        }
      }
      for (const t of s.transfers) {
        assert.ok(t.state === 'succeeded' || t.state === 'cancelled', `${t.name} is ${t.state}`);
        if (t.state === 'succeeded') {
          assert.ok(server.finished.includes(t.name), `${t.name} has not arrived`);
        }
      }
      for (const [url, { size, offset, name }] of server.uploads) {
        assert.ok(offset === size || server.abandoned.has(url), `${name} is left at the server, at ${offset} of ${size}`);
        const times = (list) => list.filter((n) => n === name).length;
        assert.ok(times(server.finished) <= 1 + times(cancels), `${name} was sent again`);
      }
    } catch (err) {
      err.message += `\nafter ${steps.slice(-40).join(', ')}`;
      throw err;
    }
    clock.timers.clear();
  });
}
