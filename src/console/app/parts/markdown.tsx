/**
 * Markdown as models write it. Only the parser of the library is used: what it finds becomes elements of ours, with text in
 * them, so that HTML in it stays text, whatever it says. Pictures are not fetched; links lead to web addresses only.
 */
import { lexer, type Token, type Tokens } from 'marked';
import type { ComponentChild } from 'preact';
import { linkUrl, pictureUrl } from './safeurl.ts';

/** Longer text is shown as it stands: parsing it would hold the page up. */
const MAX_LENGTH = 50_000;

export function Markdown({ text }: { readonly text: string }) {
  const shown = text.length > MAX_LENGTH ? null : render(text);
  return shown === null ? <div class="text">{text}</div> : <div class="markdown">{shown}</div>;
}

function render(text: string): ComponentChild[] | null {
  try {
    return blocks(lexer(text, { gfm: true, breaks: true }));
  } catch {
    // Nested too deeply for the parser: shown as it stands.
    return null;
  }
}

function blocks(tokens: readonly Token[]): ComponentChild[] {
  return tokens.map(block);
}

function block(token: Token): ComponentChild {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading;
      // Its place in the page's own outline is not the message's to choose.
      return <p class={`heading heading-${depth}`}>{inlines(tokens)}</p>;
    }
    case 'code': {
      const { text, lang } = token as Tokens.Code;
      return (
        <pre class="code" data-language={lang ?? ''} tabIndex={0}>
          <code>{text}</code>
        </pre>
      );
    }
    case 'hr':
      return <hr />;
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>;
    case 'list': {
      const { ordered, start, items } = token as Tokens.List;
      const children = items.map((item) => (
        <li>
          {item.task && <input type="checkbox" disabled checked={item.checked === true} aria-label="Task" />}
          {blocks(item.tokens)}
        </li>
      ));
      return ordered ? <ol start={start === '' ? 1 : start}>{children}</ol> : <ul>{children}</ul>;
    }
    case 'table': {
      const { header, rows } = token as Tokens.Table;
      return (
        <table>
          <thead>
            <tr>
              {header.map((cell) => (
                <th>{inlines(cell.tokens)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>
                {row.map((cell) => (
                  <td>{inlines(cell.tokens)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      );
    }
    case 'paragraph':
      return <p>{inlines((token as Tokens.Paragraph).tokens)}</p>;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? text : <>{inlines(tokens)}</>;
    }
    default:
      return inline(token);
  }
}

function inlines(tokens: readonly Token[]): ComponentChild[] {
  return tokens.map(inline);
}

function inline(token: Token): ComponentChild {
  switch (token.type) {
    case 'strong':
      return <strong>{inlines((token as Tokens.Strong).tokens)}</strong>;
    case 'em':
      return <em>{inlines((token as Tokens.Em).tokens)}</em>;
    case 'del':
      return <s>{inlines((token as Tokens.Del).tokens)}</s>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'escape':
      return (token as Tokens.Escape).text;
    case 'link': {
      const { href, tokens } = token as Tokens.Link;
      return <WebLink href={href}>{inlines(tokens)}</WebLink>;
    }
    case 'image': {
      const { href, text } = token as Tokens.Image;
      const url = pictureUrl(href);
      return url === null ? <WebLink href={href}>[picture: {text || href}]</WebLink> : <img src={url} alt={text} />;
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? text : <>{inlines(tokens)}</>;
    }
    default:
      // HTML among it.
      return token.raw;
  }
}

/** Leads out of the page, and tells the other end nothing of it. */
export function WebLink({ href, children }: { readonly href: string; readonly children: ComponentChild }) {
  const url = linkUrl(href);
  return url === null ? (
    <span title={href}>{children}</span>
  ) : (
    <a href={url} title={url} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}
