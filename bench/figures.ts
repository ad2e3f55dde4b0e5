/** What a figure should reach. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** One line of the report. */
export interface Figure {
	readonly what: string;
	readonly value: number;
	/** Empty for a ratio. */
	readonly unit: string;
	/** A figure without a goal is there to understand the others. */
	readonly goal?: Goal;
}

/** What a measurement found out. */
export type Measure = () => Promise<readonly Figure[]>;

/** The middle of a list, or the mean of its two middle values. */
export function median(values: readonly number[]): number {
	return percentile(values, 0.5);
}

/** The value below which `share` of a list lies, interpolated. */
export function percentile(values: readonly number[], share: number): number {
	const sorted = [...values].sort((a, b) => a - b);
	const at = (sorted.length - 1) * share;
	const low = sorted[Math.floor(at)];
	const high = sorted[Math.ceil(at)];
	if (low === undefined || high === undefined) throw new Error('a percentile of nothing');
	return low + (high - low) * (at % 1);
}

/** Whether a figure reaches its goal; undefined where it has none. */
export function isMet({ value, goal }: Figure): boolean | undefined {
	if (!goal) return undefined;
	return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost;
}

/** The figures of each measurement as a table for a terminal. */
export function toTable(measurements: Readonly<Record<string, readonly Figure[]>>): string {
	const rows = [['measurement', 'figure', 'value', 'goal', 'verdict']];
	for (const [name, figures] of Object.entries(measurements))
		for (const [index, figure] of figures.entries())
			rows.push([index === 0 ? name : '', figure.what, valueText(figure), goalText(figure), verdict(figure)]);
	const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
	const line = (row: readonly string[]): string =>
		row.map((cell, column) => pad(cell, widths[column] ?? 0, column === 2 || column === 3)).join('  ');
	const rule = widths.map((width) => '-'.repeat(width)).join('  ');
	return rows.flatMap((row, index) => (index === 1 ? [rule, line(row)] : [line(row)])).join('\n');
}

function pad(cell: string, width: number, right: boolean): string {
	return right ? cell.padStart(width) : cell.padEnd(width);
}

function valueText({ value, unit }: Figure): string {
	const number =
		Math.abs(value) >= 100
			? Math.round(value).toLocaleString('en')
			: value.toLocaleString('en', { maximumSignificantDigits: 3 });
	return `${number}${unit === '' ? ' x' : ` ${unit}`}`;
}

function goalText({ goal, unit }: Figure): string {
	if (!goal) return '';
	const suffix = unit === '' ? ' x' : ` ${unit}`;
	return 'atLeast' in goal ? `>= ${goal.atLeast}${suffix}` : `<= ${goal.atMost}${suffix}`;
}

function verdict(figure: Figure): string {
	const met = isMet(figure);
	if (met === undefined) return '';
	return met ? 'met' : 'MISSED';
}
