//! Explanations as a person reads them, in 100 columns.

use scarpenter_core::offering::Price;
use scarpenter_planner::{Explanation, Outcome, Priced, RuleLine};

const WIDTH: usize = 100;
/// Where the words of a rule begin.
const MARGIN: usize = 21;
/// So many pods of one block are named.
const NAMED: usize = 4;

/// One block for each fate, with all pods that share it.
pub(crate) fn render(explanations: &[Explanation]) -> String {
    let mut blocks: Vec<Vec<&Explanation>> = Vec::new();
    for explanation in explanations {
        match blocks.iter_mut().find(|block| is_alike(block[0], explanation)) {
            Some(block) => block.push(explanation),
            None => blocks.push(vec![explanation]),
        }
    }
    blocks.iter().map(|block| one(block)).collect::<Vec<_>>().join("\n")
}

/// Whether the same is to be said of both.
fn is_alike(a: &Explanation, b: &Explanation) -> bool {
    let fate = match (&a.outcome, &b.outcome) {
        (
            Outcome::Machine { pool, bought, beside },
            Outcome::Machine { pool: other_pool, bought: other_bought, beside: other_beside },
        ) => pool == other_pool && bought == other_bought && beside.len() == other_beside.len(),
        (a, b) => a == b,
    };
    fate && a.rules == b.rules && a.advice == b.advice && a.nodes == b.nodes && a.more_nodes == b.more_nodes
}

fn one(block: &[&Explanation]) -> String {
    let first = block[0];
    let mut out = paragraph("", &format!("{}: {}", names(block), fate(&first.outcome)));
    if let Some(start) = first.rules.first() {
        let all = start.left + start.removed;
        out.push_str("    LEFT   USD/HOUR  RULE\n");
        let cheapest = start.cheapest_before.as_ref();
        let words = match cheapest {
            Some(cheapest) => format!("all offerings; cheapest with room: {}", cheapest.offering),
            None => "all offerings; none has room for the pod".to_owned(),
        };
        out.push_str(&row(all, cheapest, false, &words));
    }
    for line in first.rules.iter().filter(|line| line.removed > 0) {
        out.push_str(&rule(line));
    }
    let idle: Vec<&str> =
        first.rules.iter().filter(|line| line.removed == 0).map(|line| line.rule.as_str()).collect();
    if !idle.is_empty() {
        out.push_str(&paragraph("  ", &format!("no offering removed by: {}", idle.join(", "))));
    }
    for advice in &first.advice {
        out.push_str(&paragraph("  ", &format!("to change ({}): {}", advice.rule, advice.words)));
    }
    for node in &first.nodes {
        out.push_str(&paragraph("  ", &format!("not on {} ({}): {}", node.node, node.reason, node.message)));
    }
    match first.more_nodes {
        0 => {}
        1 => out.push_str("  nor on 1 more node\n"),
        more => out.push_str(&format!("  nor on {more} more nodes\n")),
    }
    out
}

fn names(block: &[&Explanation]) -> String {
    let named: Vec<String> = block.iter().take(NAMED).map(|own| own.pod.to_string()).collect();
    let more = block.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn fate(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Machine { pool, bought, beside } => {
            let shared = match beside.len() {
                0 => String::new(),
                1 => ", shared with 1 other pod".to_owned(),
                others => format!(", shared with {others} other pods"),
            };
            format!("{bought} for NodePool {pool}{shared}")
        }
        Outcome::Place { name, promised: true } => format!("waits for {name}, which was made for it"),
        Outcome::Place { name, promised: false } => format!("waits for {name}, which has room for it"),
        Outcome::Refused(refusal) => format!("no machine ({}): {}", refusal.reason, refusal.message),
        Outcome::Deferred => {
            "not looked at in this pass, which is bounded; the next one begins with it".to_owned()
        }
    }
}

fn rule(line: &RuleLine) -> String {
    let after = line.cheapest_after.as_ref();
    // A rule that is called by its label says no more than what is asked of it.
    let named = if line.asked.starts_with(&line.rule) { String::new() } else { line.rule.clone() };
    let between = if named.is_empty() || line.asked.is_empty() { "" } else { ": " };
    let changed = after.filter(|_| line.cheapest_after != line.cheapest_before);
    let cheapest = changed.map(|after| format!("; cheapest: {}", after.offering)).unwrap_or_default();
    row(line.left, after, line.is_dearer(), &format!("{named}{between}{}{cheapest}", line.asked))
}

fn row(left: usize, cheapest: Option<&Priced>, dearer: bool, words: &str) -> String {
    let price = cheapest.map_or_else(|| "-".to_owned(), |cheapest| usd(cheapest.price));
    let mark = if dearer && cheapest.is_some() { "+" } else { "" };
    let start = format!("{left:>8}  {:>9}  ", format!("{mark}{price}"));
    let mut out = String::new();
    for (number, line) in wrap(words, WIDTH - MARGIN).into_iter().enumerate() {
        let margin = if number == 0 { start.clone() } else { " ".repeat(MARGIN) };
        out.push_str(&format!("{margin}{line}\n"));
    }
    out
}

fn usd(price: Price) -> String {
    price.to_string().trim_start_matches('$').trim_end_matches("/h").to_owned()
}

/// Words on as many lines as they need, the later ones two further in.
pub(crate) fn paragraph(indent: &str, words: &str) -> String {
    let mut out = String::new();
    for (number, line) in wrap(words, WIDTH - indent.len() - 2).into_iter().enumerate() {
        let further = if number == 0 { "" } else { "  " };
        out.push_str(&format!("{indent}{further}{line}\n"));
    }
    out
}

/// Lines of at most `width` characters; a word that is longer stands alone.
fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
