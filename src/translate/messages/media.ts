/** Parts that are images, audio or files: by link or by data, of every family. */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Literal } from '../kernel/kernel.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import { PartKind } from './kinds.ts';
import type { MessageLiterals } from './literals.ts';
import type { Nodes } from './nodes.ts';

export class Media {
  readonly #docs: Documents;
  readonly #nodes: Nodes;
  readonly #l: MessageLiterals;

  constructor({ docs }: Toolbox, literals: MessageLiterals, nodes: Nodes) {
    this.#docs = docs;
    this.#l = literals;
    this.#nodes = nodes;
  }

  kind(part: NodeWord, type: NodeWord): number {
    const docs = this.#docs;
    const w = this.#l.word;
    const k = this.#l.kind;
    const has = (name: Literal): boolean => this.#nodes.string(docs.member(part, name)) !== 0;
    if (docs.is(type, w.uri)) {
      if (!has(w.uri)) return PartKind.Pass;
      if (this.#isModality(part, w.image, this.#l.imagePrefix)) return PartKind.ImageUrl;
      return this.#isModality(part, k.audio, this.#l.audioPrefix) ? PartKind.AudioUrl : PartKind.Pass;
    }
    if (docs.is(type, k.blob)) {
      if (this.#dataOf(part) === 0) return PartKind.Pass;
      if (this.#isModality(part, w.image, this.#l.imagePrefix)) return PartKind.ImageData;
      return this.#isModality(part, k.audio, this.#l.audioPrefix) ? PartKind.AudioData : PartKind.Pass;
    }
    if (docs.is(type, k.binary)) {
      if (this.#dataOf(part) === 0) return PartKind.Pass;
      if (this.#isMime(part, this.#l.imagePrefix)) return PartKind.ImageData;
      return this.#isMime(part, this.#l.audioPrefix) ? PartKind.AudioData : PartKind.Pass;
    }
    if (docs.is(type, k.vercelImageUrl)) return has(w.url) ? PartKind.ImageUrl : PartKind.Pass;
    if (docs.is(type, k.audioUrl)) return has(w.url) ? PartKind.AudioUrl : PartKind.Pass;
    if (docs.is(type, w.image)) return has(w.image) ? PartKind.ImageData : PartKind.Pass;
    if (docs.is(type, w.imageUrl)) return has(w.imageUrl) ? PartKind.ImageUrl : PartKind.Pass;
    if (docs.is(type, w.file)) {
      if (has(w.fileId)) return PartKind.File;
      return has(w.data) && this.#isMime(part, this.#l.imagePrefix) ? PartKind.ImageData : PartKind.Pass;
    }
    return PartKind.Pass;
  }

  #isMime(part: NodeWord, prefix: Literal): boolean {
    const mime = this.#mimeOf(part);
    return mime !== 0 && this.#docs.starts(mime, prefix);
  }

  /** By the part's modality; where it has none, by its MIME type. */
  #isModality(part: NodeWord, modality: Literal, mimePrefix: Literal): boolean {
    const own = this.#docs.present(part, this.#l.word.modality);
    if (own === 0) return this.#isMime(part, mimePrefix);
    return this.#docs.type(own) === Node.String && this.#docs.is(own, modality);
  }

  #mimeOf(part: NodeWord): NodeWord {
    const docs = this.#docs;
    const w = this.#l.word;
    return (
      this.#nodes.filled(docs.member(part, w.mime_type)) ||
      this.#nodes.filled(docs.member(part, w.media_type)) ||
      this.#nodes.filled(docs.member(part, w.mediaType)) ||
      this.#nodes.filled(docs.member(part, w.mimeType))
    );
  }

  #dataOf(part: NodeWord): NodeWord {
    const w = this.#l.word;
    return (
      this.#nodes.string(this.#docs.member(part, w.content)) || this.#nodes.string(this.#docs.member(part, w.data))
    );
  }

  image(part: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    const type = this.#nodes.typeOf(part);
    const data = docs.is(type, w.image)
      ? docs.member(part, w.image)
      : docs.is(type, w.file)
        ? docs.member(part, w.data)
        : this.#dataOf(part);
    out.literal(this.#l.typeImage);
    if (
      this.#docs.starts(data, this.#l.http) ||
      this.#docs.starts(data, this.#l.https) ||
      this.#docs.starts(data, this.#l.dataUrl)
    )
      docs.copy(data, out);
    else {
      const mime = this.#mimeOf(part);
      out.literal(this.#l.dataUrlOpen);
      if (mime === 0) out.literal(this.#l.defaultImage);
      else out.raw(docs.start(mime) + 1, docs.end(mime) - docs.start(mime) - 2);
      out.literal(this.#l.base64);
      out.raw(docs.start(data) + 1, docs.end(data) - docs.start(data) - 1);
    }
    out.literal(this.#l.closeTwo);
    out.comma();
  }

  audio(part: NodeWord, kind: number, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    out.literal(this.#l.typeAudio);
    if (kind === PartKind.AudioUrl) {
      out.literal(this.#l.urlIs);
      docs.copy(docs.member(part, docs.is(this.#nodes.typeOf(part), w.uri) ? w.uri : w.url), out);
    } else {
      out.literal(this.#l.dataIs);
      docs.copy(this.#dataOf(part), out);
    }
    const mime = this.#mimeOf(part);
    if (mime !== 0) {
      out.literal(this.#l.mimeIs);
      docs.copy(mime, out);
    }
    const transcript = this.#nodes.string(docs.member(part, w.transcript));
    if (transcript !== 0) {
      out.literal(this.#l.transcriptIs);
      docs.copy(transcript, out);
    }
  }
}
