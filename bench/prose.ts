/**
 * Text that compresses and escapes about as real prompts do: words drawn by rank (few common ones, many rare ones),
 * sentences, and on demand the line breaks, quotes, code and non-ASCII passages of a long chat.
 */
import type { Random } from './random.ts';

const SYLLABLES =
  'an be co de en fi ga ho in ja ka lo me no or pa qua re si ta un ve wi xe yo za str ing tion ment er al ous ive'.split(
    ' ',
  );
const COMMON_WORDS =
  'the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could these two may first then do any like my now over such our man me even most made after also did many off before must well back through years where much your way down should because long each just state those people too mr how little good world make very year still see own work men day get here old'.split(
    ' ',
  );
const FOREIGN_PASSAGES = [
  'Die Größe des Geräts überschreitet die zulässigen Maße, prüfen Sie bitte die Maßstäbe für Öl und Äther.',
  '请根据上面的文档总结要点，并列出三个可能的风险以及相应的缓解措施。',
  'Пожалуйста, сформулируйте ответ кратко и укажите источники, на которые вы опираетесь.',
  'Résumé: l’équipe a déjà livré la première étape — façade, débit, côté sécurité — « à vérifier ».',
  '検索結果が空の場合は、その旨を利用者に伝えてください。 👍🏽 🚀',
];

export interface Prose {
  /** Plain ASCII sentences of about `lengthChars` characters; no quotes, rarely a line break. */
  sentences(lengthChars: number): string;
  /** As a long chat has it: paragraphs, lists, quoted phrases, code and, in one of five, non-ASCII passages. */
  chat(lengthChars: number): string;
  word(): string;
}

export type Vocabulary = readonly string[];

export function createVocabulary(random: Random): Vocabulary {
  const words = [...COMMON_WORDS];
  while (words.length < 4000) {
    words.push(Array.from({ length: random.between(2, 4) }, () => random.pick(SYLLABLES)).join(''));
  }
  return words;
}

/** How often a passage was said before: agents pass on what they were told, so the spans of a trace share their texts. */
const REPEATED_RATIO = 0.5;

/** The prose of one trace. */
export function createProse(random: Random, vocabulary: Vocabulary): Prose {
  // Cubing the draw favours low ranks, roughly as natural language does.
  const word = (): string => vocabulary[Math.floor(random.next() ** 3 * vocabulary.length)] ?? 'the';
  const sentence = (): string => {
    let text = word();
    for (let i = random.between(5, 16); i > 0; i--) text += (random.chance(0.08) ? ', ' : ' ') + word();
    return text.charAt(0).toUpperCase() + text.slice(1) + '. ';
  };
  const code = (): string => {
    const name = word();
    const keys = `{"${word()}": "${word()}", "${word()}": [${random.between(1, 999)}, ${random.between(1, 999)}]}`;
    return `\n\`\`\`python\ndef ${name}(${word()}):\n\treturn f"${word()} {${name}}"  # C:\\${word()}\n${name}('''${keys}''')\n\`\`\`\n`;
  };
  const foreign = random.chance(0.2);
  const chatter = (): string => {
    const draw = random.next();
    if (draw < 0.45) return sentence();
    if (draw < 0.65) return `\n- ${sentence()}\n- ${sentence()}`;
    if (draw < 0.8) return `"${sentence().trimEnd()}" `;
    if (draw < 0.9) return '\n\n';
    return draw < 0.95 || !foreign ? code() : random.pick(FOREIGN_PASSAGES) + ' ';
  };
  const passages = (draw: () => string): ((lengthChars: number) => string) => {
    const said: string[] = [];
    return (lengthChars) => {
      let text = '';
      while (text.length < lengthChars) {
        if (said.length > 0 && random.chance(REPEATED_RATIO)) {
          text += random.pick(said);
          continue;
        }
        const passage = Array.from({ length: random.between(2, 4) }, draw).join('');
        said.push(passage);
        text += passage;
      }
      // Not through a surrogate pair: the text must stay valid Unicode.
      const end = /[\uD800-\uDBFF]/.test(text.charAt(lengthChars - 1)) ? lengthChars - 1 : lengthChars;
      return text.slice(0, end);
    };
  };
  return {
    word,
    sentences: passages(() => (random.chance(0.03) ? sentence().trimEnd() + '\n' : sentence())),
    chat: passages(chatter),
  };
}
