// The page: it shows a Scheduler and passes orders to it.
import './vendor/tus.min.js';
import { Scheduler, priorities } from './scheduler.js';

const tokenName = 'stint-uploads-token'; // in sessionStorage
const refreshEvery = 500; // ms, of rates and times

const { endpoint, token: asks } = document.body.dataset;
const $ = (id) => document.getElementById(id);
const list = $('list');
const rows = new Map(); // elements of each transfer
const changed = new Set(); // transfers to show in the next frame
let framed = false;

const scheduler = new Scheduler({ tus: globalThis.tus, endpoint: new URL(endpoint, location).href, headers });

// A browser that keeps nothing for this site refuses access to its storage: then the token is kept
// until the page is left.
let kept = '';

function storedToken() {
  try {
    return kept || (sessionStorage.getItem(tokenName) ?? '');
  } catch {
    return kept;
  }
}

function storeToken(token) {
  kept = token;
  try {
    sessionStorage.setItem(tokenName, token);
  } catch {
    // it is in kept
  }
}

function headers() {
  const token = storedToken();
  return token ? { Authorization: `Bearer ${token}` } : {};
}

scheduler.addEventListener('change', ({ detail }) => {
  changed.add(detail);
  showSoon();
});

scheduler.addEventListener('forget', ({ detail }) => {
  const item = rows.get(detail)?.item;
  rows.delete(detail);
  changed.delete(detail);
  const next = item?.contains(document.activeElement) && (item.nextElementSibling ?? item.previousElementSibling ?? list);
  item?.remove();
  if (next) {
    (firstButton(next) ?? $('files')).focus();
  }
  showSoon();
});

let sessionEnded = false; // of a page without a token

scheduler.addEventListener('unauthorized', () => {
  if (asks === undefined) {
    sessionEnded = true;
    showSoon();
    set($('notice'), 'textContent',
      'The server does not accept this session any more. Renew it, in another tab for example, and choose “Resume all” here.');
  } else {
    signIn('The server does not accept this token.');
  }
});

// renewed continues after an answer 401 to a page without a token: its user may have renewed the session.
function renewed() {
  if (sessionEnded) {
    sessionEnded = false;
    set($('notice'), 'textContent', '');
    scheduler.authorize();
  }
}

// showSoon shows in the next frame what has changed, however much that is.
function showSoon() {
  if (!framed) {
    framed = true;
    requestAnimationFrame(show);
  }
}

function show() {
  framed = false;
  const added = document.createDocumentFragment();
  for (const t of changed) {
    if (!rows.has(t)) {
      rows.set(t, newRow(t));
      added.append(rows.get(t).item);
    }
    showRow(t, rows.get(t));
  }
  changed.clear();
  list.append(added);
  showSummary();
}

function newRow(t) {
  const item = $('row').content.firstElementChild.cloneNode(true);
  const find = (selector) => item.querySelector(selector);
  const row = {
    item,
    bar: find('.bar'), done: find('.bar .done'), current: find('.current'), state: find('.state'),
    facts: find('.facts'), message: find('.message'), choose: find('.choose'), select: find('select'),
    buttons: [...item.querySelectorAll('button')],
  };
  find('.name').textContent = t.name;
  row.bar.setAttribute('aria-label', t.name);
  for (const b of row.buttons) {
    b.setAttribute('aria-label', `${b.textContent} ${t.name}`);
    b.addEventListener('click', () => {
      scheduler[b.dataset.order](t);
      showRow(t, row);
    });
  }
  find('.choose input').setAttribute('aria-label', `Choose ${t.name} again`);
  find('.choose input').addEventListener('change', async (event) => {
    const [file] = event.target.files;
    event.target.value = '';
    if (file) {
      await scheduler.chooseAgain(t, file);
    }
  });
  row.select.append(...priorities.map((p) => new Option(p, p)));
  row.select.setAttribute('aria-label', `Priority of ${t.name}`);
  row.select.addEventListener('change', () => scheduler.setPriority(t, row.select.value));
  return row;
}

// showRow writes what has changed only: an unchanged text or attribute costs no layout. If that hides what
// has the focus, the focus moves to the first button of the row.
function showRow(t, row) {
  const focused = row.item.contains(document.activeElement) ? document.activeElement : null;
  const before = row.item.dataset.state;
  set(row.item.dataset, 'state', t.state);
  set(row.state, 'textContent', stateText(t));
  set(row.facts, 'textContent', factsText(t));
  set(row.message, 'textContent', t.message);
  set(row.select, 'value', t.priority);
  const allowed = {
    pause: t.can('paused'),
    resume: t.state === 'paused' && t.can('waiting'),
    retry: (t.state === 'error' || t.state === 'cancelled') && t.can('waiting'),
    cancel: t.can('cancelled'),
    forget: t.state === 'succeeded' || t.state === 'cancelled',
  };
  for (const b of row.buttons) {
    set(b, 'hidden', !allowed[b.dataset.order]);
  }
  set(row.choose, 'hidden', !t.needsFile);
  set(row.select.parentElement, 'hidden', allowed.forget); // of no use to what has ended
  if (focused?.closest('[hidden]')) {
    firstButton(row.item)?.focus();
  }
  const chunk = t.state === 'succeeded' ? 0 : Math.min(t.chunkSize, t.size - t.accepted);
  const chunks = t.chunks();
  row.done.style.width = percent(t.accepted, t);
  row.current.style.left = percent(t.accepted, t);
  row.current.style.width = chunks.error > 0 ? percent(chunk, t) : percent(Math.max(0, t.sent - t.accepted), t);
  row.item.classList.toggle('failed', chunks.error > 0);
  row.bar.setAttribute('aria-valuenow', Math.floor(share(t.sent, t)));
  if (before !== t.state && ['succeeded', 'error', 'cancelled'].includes(t.state)) {
    set($('spoken'), 'textContent', `${t.name}: ${stateText(t)}`);
  }
}

function set(target, name, value) {
  if (target[name] !== value) {
    target[name] = value;
  }
}

const share = (bytes, t) => (t.state === 'succeeded' ? 100 : t.size === 0 ? 0 : (100 * bytes) / t.size);
const percent = (bytes, t) => `${share(bytes, t)}%`;

const firstButton = (element) => element.querySelector('button:not([hidden])');

function stateText(t) {
  if (t.needsFile) {
    return t.state === 'paused' ? 'paused: choose the file again' : 'error: choose the file again';
  }
  return t.state === 'waiting' && t.failures > 0 ? 'waiting to try again' : t.state;
}

function factsText(t) {
  const now = performance.now();
  const chunks = t.chunks();
  const facts = [t.state === 'succeeded' ? bytes(t.size) : `${bytes(t.sent)} of ${bytes(t.size)}`];
  if (t.state === 'running') {
    facts.push(...speed(t.rate(now)), ...timeLeft(t.secondsLeft(now)));
  }
  if (t.chunkCount > 1 && t.state !== 'succeeded') {
    facts.push(`${chunks.done} of ${t.chunkCount} chunks`);
  }
  if (t.attempt > 1 && t.state !== 'succeeded') {
    facts.push(`attempt ${t.attempt}`);
  }
  return join(facts);
}

function showSummary() {
  const { states, size, sent, rate, secondsLeft } = scheduler.stats();
  const counts = Object.entries(states).filter(([, n]) => n > 0).map(([state, n]) => `${n} ${state}`);
  if (counts.length > 0) {
    counts.push(`${bytes(sent)} of ${bytes(size)}`);
  }
  if (states.running > 0) {
    counts.push(...speed(rate), ...timeLeft(secondsLeft));
  }
  set($('summary'), 'textContent', join(counts) || 'No files yet.');
  const all = size > 0 ? (100 * sent) / size : 0;
  $('total').firstElementChild.style.width = `${all}%`;
  $('total').setAttribute('aria-valuenow', Math.floor(all));
  $('pause-all').disabled = states.waiting + states.running === 0;
  $('resume-all').disabled = !sessionEnded && !scheduler.transfers.some((t) => t.state === 'paused' && !t.needsFile);
  $('retry-all').disabled = states.error === 0;
  $('clear').disabled = states.succeeded + states.cancelled === 0;
}

// join separates facts by dots. A line breaks after a dot only, so that no number stands apart from its unit.
function join(facts) {
  return facts.map((f) => f.replaceAll(' ', '\u00a0')).join('\u00a0· ');
}

// bytes writes a size with three digits, as in 1.25 MB.
function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (n >= 999.5 && i < units.length - 1) { // which three digits round to 1000
    n /= 1000;
    i++;
  }
  return `${i === 0 ? Math.round(n) : n.toPrecision(3)} ${units[i]}`;
}

// speed returns a list with the text about a rate, and an empty one if nothing moves.
function speed(rate) {
  return rate > 0 ? [`${bytes(rate)}/s`] : [];
}

// timeLeft returns a list with the text about a time, and an empty one if nothing moves.
function timeLeft(seconds) {
  if (!Number.isFinite(seconds)) {
    return [];
  }
  const s = Math.ceil(seconds);
  if (s < 60) {
    return [`${s} s left`];
  }
  return [s < 3600 ? `${Math.ceil(s / 60)} min left` : `${(s / 3600).toFixed(1)} h left`];
}

async function add(files) {
  set($('notice'), 'textContent', '');
  renewed();
  for (const file of files) {
    const t = await scheduler.add(file);
    if (t.state === 'succeeded') {
      set($('notice'), 'textContent', `${file.name} has been sent already.`);
    }
  }
}

$('files').addEventListener('change', (event) => {
  const files = [...event.target.files];
  event.target.value = '';
  add(files);
});
$('pause-all').addEventListener('click', () => scheduler.pauseAll());
$('resume-all').addEventListener('click', () => {
  renewed();
  scheduler.resumeAll();
});
$('retry-all').addEventListener('click', () => {
  renewed();
  scheduler.retryAll();
});
$('clear').addEventListener('click', () => scheduler.forgetAll());
$('slots').addEventListener('change', (event) => {
  if (event.target.checkValidity()) {
    scheduler.slots = event.target.valueAsNumber;
  } else {
    event.target.value = scheduler.slots; // the number in force
  }
});

document.addEventListener('dragover', (event) => {
  event.preventDefault();
  document.body.classList.add('dropping');
});
document.addEventListener('dragleave', () => document.body.classList.remove('dropping'));
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('dropping');
  const items = [...event.dataTransfer.items].filter((i) => i.kind === 'file');
  const folders = items.filter((i) => i.webkitGetAsEntry()?.isDirectory).length;
  add(items.filter((i) => !i.webkitGetAsEntry()?.isDirectory).map((i) => i.getAsFile()));
  if (folders > 0) {
    set($('notice'), 'textContent', 'Folders cannot be sent. Drop the files in them.');
  }
});

setInterval(() => {
  for (const [t, row] of rows) {
    if (t.state === 'running') {
      showRow(t, row);
    }
  }
  showSummary();
}, refreshEvery);

let asking = false; // for the token

// signIn asks for the token, which is stored once the server accepts it.
function signIn(reason) {
  asking = true;
  set($('refused'), 'textContent', reason);
  if (!$('sign-in').open) {
    $('sign-in').showModal();
  }
}

$('sign-in').addEventListener('cancel', (event) => event.preventDefault());
// Browsers let a page prevent that once, and close the dialog when Escape is pressed again.
$('sign-in').addEventListener('close', () => {
  if (asking) {
    $('sign-in').showModal();
  }
});
$('sign-in').querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const token = $('token').value.trim();
  const refused = await refusal(token);
  if (refused) {
    signIn(refused);
    return;
  }
  storeToken(token);
  $('token').value = '';
  asking = false;
  $('sign-in').close();
  scheduler.authorize();
});

// refusal asks the server whether it accepts a token, and returns why not, or ''.
async function refusal(token) {
  try {
    const answer = await fetch(endpoint, {
      method: 'OPTIONS',
      headers: { Authorization: `Bearer ${token}`, 'Tus-Resumable': '1.0.0' },
    });
    if (answer.ok) {
      return '';
    }
    return answer.status === 401 ? 'The server does not accept this token.' : `The server answers ${answer.status}.`;
  } catch {
    return 'The server cannot be reached.';
  }
}

showSummary();
if (asks !== undefined && !storedToken()) {
  signIn('');
}
await scheduler.restore();
