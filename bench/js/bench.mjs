// Does TASKS empty tasks with one of the subjects, and prints how many of them
// it did in a second.
//
//     node bench.mjs SUBJECT TASKS CONCURRENCY

import pLimit from 'p-limit';
import PQueue from 'p-queue';

const [, , name, tasks, width] = process.argv;
const count = Number(tasks);
const concurrency = Number(width);
const tiers = 7;

const one = async () => 1;

const subjects = {
	// Each task has a promise, and all of them are waited for.
	'p-limit': () => {
		const limit = pLimit(concurrency);
		return collect(() => limit(one));
	},
	'p-queue': () => {
		const queue = new PQueue({concurrency});
		return collect(() => queue.add(one));
	},
	// All tasks are pending before the first one starts.
	'p-queue priorities': () => {
		const queue = new PQueue({concurrency, autoStart: false});
		const all = collect(i => queue.add(one, {priority: i % tiers}));
		queue.start();
		return all;
	},
};

async function collect(add) {
	const promises = Array.from({length: count}, (_, i) => add(i));
	const values = await Promise.all(promises);
	return values.reduce((sum, value) => sum + value, 0);
}

async function timed(subject) {
	const start = process.hrtime.bigint();
	const done = await subject();
	if (done !== count) {
		throw new Error(`${name}: did ${done} of ${count} tasks`);
	}
	return Number(process.hrtime.bigint() - start) / 1e9;
}

const subject = subjects[name];
await timed(subject); // the compiler has seen it all before the clock counts
console.log(count / await timed(subject));
