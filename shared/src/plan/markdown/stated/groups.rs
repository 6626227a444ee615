//! Names that a plan gives to groups of tasks: "Program fixes (T010-T016) are sequential" lets "program fixes" stand for
//! these tasks in other sentences.

use super::super::{
    Page,
    keywords::{Voice, keyword_at},
    lines::{Kind, Line},
    mentions::{Mentions, Name},
    node_index::{MOST_GROUP_WORDS, NodeIndex},
    tokens::{Piece, Token, Tokenizer},
};

/// Notes the names of groups in the lines that speak of order.
pub(super) fn name_groups(pages: &[Page<'_, '_>], known: &mut NodeIndex) {
    /// More names than this are not kept.
    const MOST: usize = 1000;
    let mut named = Vec::new();
    for page in pages {
        let is_id = |id: &str| known.find(id).is_some();
        let tokenizer = Tokenizer { is_id: &is_id };
        let mentions = Mentions { known, reads_titles: false };
        let blocks = page.outline.dependencies.iter().flat_map(|block| &block.lines);
        let lines = blocks.chain(&page.outline.parallel_lines).filter(|line| line.kind != Kind::Code);
        for line in lines.filter(|line| line.text.contains(['(', '（'])) {
            groups_of(line, &tokenizer, &mentions, &mut named);
            if named.len() > MOST {
                break;
            }
        }
    }
    named.into_iter().for_each(|(name, tasks)| known.name_group(name, tasks));
}

/// The names in one line: some words at the start of a sentence, and tasks in brackets behind them.
fn groups_of(
    line: &Line<'_>,
    tokenizer: &Tokenizer<'_>,
    mentions: &Mentions<'_>,
    named: &mut Vec<(Vec<String>, Vec<usize>)>,
) {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    tokenizer.lines(std::iter::once(line), &mut tokens);
    for open in (0..tokens.len()).filter(|at| tokens[*at].what == Piece::Open) {
        let words: Vec<String> = tokens[..open]
            .iter()
            .rev()
            .map_while(|token| match token.what {
                Piece::Word(word) => Some(word.to_lowercase()),
                _ => None,
            })
            .take(MOST_GROUP_WORDS + 1)
            .collect();
        let is_start = open == words.len()
            || matches!(tokens[open - words.len() - 1].what, Piece::Stop | Piece::Colon | Piece::Other);
        // "depends on the controller (T013)" gives no name.
        let says_order =
            (open - words.len()..open).any(|at| keyword_at(&tokens, at, Voice::Section).is_some());
        if says_order || !(2..=MOST_GROUP_WORDS).contains(&words.len()) || !is_start {
            continue;
        }
        let Some(list) = mentions.list_at(&tokens, open + 1) else { continue };
        let is_task = |name: &Name<'_>| matches!(name, Name::Task(_) | Name::Range(..));
        let is_whole = tokens.get(list.end).is_some_and(|token| token.what == Piece::Close);
        if is_whole && list.members.iter().all(|(name, _)| is_task(name)) {
            named.push((words.into_iter().rev().collect(), mentions.known.nodes(&list.members)));
        }
    }
}
