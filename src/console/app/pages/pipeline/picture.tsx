/** The way of the spans, alive: a box a stage with its state in words, its rate and how full it is; arrows move while spans do. */
import { perSecond } from './figures.ts';
import { LEVEL_WORDS, type Health, type Judgement, type Level, type StageId } from './health.ts';
import type { Stage } from './stages.ts';

export interface PictureProps {
  readonly stages: readonly Stage[];
  readonly spool: Stage;
  readonly health: Health;
  readonly selected: StageId | null;
  readonly onSelect: (id: StageId) => void;
}

export function Picture({ stages, spool, health, selected, onSelect }: PictureProps) {
  return (
    <section class="stages-picture" aria-label="Stages">
      <ol class="stages">
        {stages.map((stage, index) => (
          <li key={stage.id}>
            {index > 0 && <Arrow rate={stages[index - 1]?.rate ?? 0} />}
            <Box
              stage={stage}
              judgement={health.stages[stage.id]}
              selected={selected === stage.id}
              onSelect={() => onSelect(stage.id)}
            />
          </li>
        ))}
      </ol>
      <Box
        stage={spool}
        judgement={health.stages.spool}
        selected={selected === 'spool'}
        onSelect={() => onSelect('spool')}
        wide
      />
    </section>
  );
}

interface BoxProps {
  readonly stage: Stage;
  readonly judgement: Judgement;
  readonly selected: boolean;
  readonly onSelect: () => void;
  readonly wide?: boolean;
}

function Box({ stage, judgement, selected, onSelect, wide = false }: BoxProps) {
  const { id, title, does, rate, fill, facts } = stage;
  return (
    <article
      class={`stage stage-${judgement.level}${wide ? ' stage-wide' : ''}${selected ? ' stage-selected' : ''}`}
      data-stage={id}
    >
      <header>
        <button type="button" class="plain stage-title" aria-pressed={selected} title={does} onClick={onSelect}>
          {title}
        </button>
        <LevelBadge level={judgement.level} />
      </header>
      <p class="stage-rate">
        <b>{perSecond(rate)}</b> <span class="quiet">spans/s</span>
      </p>
      {fill !== null && (
        <p class="stage-fill" title={fill.text}>
          <meter aria-label={`${title}, ${fill.label}`} min={0} max={1} value={fill.ratio}>
            {fill.text}
          </meter>
          <span class="quiet">
            {fill.label} {fill.text}
          </span>
        </p>
      )}
      <dl class="stage-facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {judgement.reasons.length > 0 && (
        <ul class="stage-reasons">
          {judgement.reasons.slice(0, 2).map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
          {judgement.reasons.length > 2 && <li>{judgement.reasons.length - 2} more, above</li>}
        </ul>
      )}
    </article>
  );
}

/** A shape and a word for each level: colour alone says nothing to many. */
export function LevelBadge({ level }: { readonly level: Level }) {
  return (
    <span class={`badge level level-${level}`}>
      <svg viewBox="0 0 10 10" aria-hidden="true">
        <path d={LEVEL_SHAPES[level]} />
      </svg>
      {LEVEL_WORDS[level]}
    </span>
  );
}

const LEVEL_SHAPES: Readonly<Record<Level, string>> = {
  idle: 'M2 4.300h6v1.400h-6z',
  well: 'M1 5.200 2.300 4 4.100 5.800 7.900 2 9.100 3.200 4.100 8.200z',
  degraded: 'M5 1 9.500 9h-9z',
  full: 'M1 1h8v8h-8z',
  down: 'M2.200 1 5 3.800 7.800 1 9 2.200 6.200 5 9 7.800 7.800 9 5 6.200 2.200 9 1 7.800 3.800 5 1 2.200z',
};

/** Dashes run the faster the more spans do, by powers of ten. */
function Arrow({ rate }: { readonly rate: number }) {
  const speed = rate === 0 ? 0 : Math.min(3, 1 + Math.floor(Math.log10(Math.max(1, rate)) / 1.5));
  return (
    <svg class={`flow flow-${speed}`} viewBox="0 0 22 12" aria-hidden="true">
      <path class="flow-line" d="M0 6h16" />
      <path class="flow-head" d="M15 2l5 4-5 4" />
    </svg>
  );
}
