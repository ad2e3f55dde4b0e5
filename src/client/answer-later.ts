/**
 * Thrown by a handler of a task's question: the person will answer later. Nothing is sent, the task stays
 * `input_required`, and the question is asked again by `TaskClient.askAgain()` and by whoever resumes the task after
 * this client. A question that was not asked by a task of 2026-07-28 cannot wait, and fails like with any error.
 */
export class AnswerLater extends Error {
	constructor(message = 'The question will be answered later') {
		super(message);
		this.name = 'AnswerLater';
	}
}

/** Another host that shares the journal asks this question, or has its answer. */
export class AskedElsewhere extends Error {}
