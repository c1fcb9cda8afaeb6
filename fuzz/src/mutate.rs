//! Mutations that keep text near to what the readers accept: lines and tokens are moved, copied and swapped, within
//! the input and with those of the seeds, where libFuzzer's bytes would mostly make syntax errors.

use std::sync::OnceLock;

use crate::{kernel, seeds};

/// What the seeds of a target are made of.
struct Pool {
    /// Every line, without indentation.
    lines: Vec<String>,
    /// Every name, number and text.
    words: Vec<String>,
}

impl Pool {
    fn from_seeds(target: &str) -> Pool {
        let mut pool = Pool {
            lines: Vec::new(),
            words: Vec::new(),
        };
        for (_, text) in seeds::read(target) {
            for line in text.lines().filter(|l| !l.trim().is_empty()) {
                pool.lines.push(line.trim_start().to_string());
                let words = tokens(line).into_iter().filter(|t| t.starts_with(is_word));
                pool.words.extend(words.map(str::to_string));
            }
        }
        pool.words.sort();
        pool.words.dedup();
        pool
    }
}

/// A mutation of a kernel file; `None` leaves it to libFuzzer.
pub fn kernel_file(data: &[u8], max: usize, seed: u32) -> Option<Vec<u8>> {
    static POOL: OnceLock<Pool> = OnceLock::new();
    mutate(
        POOL.get_or_init(|| Pool::from_seeds("kernel")),
        data,
        max,
        seed,
        kernel::is_python,
    )
}

/// A mutation of a manifest; `None` leaves it to libFuzzer.
pub fn manifest(data: &[u8], max: usize, seed: u32) -> Option<Vec<u8>> {
    static POOL: OnceLock<Pool> = OnceLock::new();
    mutate(POOL.get_or_init(|| Pool::from_seeds("manifest")), data, max, seed, |_| {
        true
    })
}

/// A mutation of a lock file; `None` leaves it to libFuzzer.
pub fn lock(data: &[u8], max: usize, seed: u32) -> Option<Vec<u8>> {
    static POOL: OnceLock<Pool> = OnceLock::new();
    mutate(POOL.get_or_init(|| Pool::from_seeds("lock")), data, max, seed, |_| true)
}

fn mutate(pool: &Pool, data: &[u8], max: usize, seed: u32, accepted: fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut random = Random(u64::from(seed) + 1);
    // One in sixteen mutations is libFuzzer's own.
    if random.below(16) == 0 || data.is_empty() || pool.lines.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(data);
    let original: Vec<String> = text.split('\n').map(str::to_string).collect();
    let mut mutated = None;
    // Texts with syntax errors find little: several attempts are made to get one without.
    for _ in 0..10 {
        let mut lines = original.clone();
        for _ in 0..1 + random.below(3) {
            match random.below(3) {
                0 => change_lines(&mut lines, pool, &mut random),
                _ => change_tokens(&mut lines, pool, &mut random),
            }
        }
        let text = lines.join("\n");
        if text.len() > max || text.is_empty() {
            continue;
        }
        let good = accepted(&text);
        mutated = Some(text.into_bytes());
        if good {
            break;
        }
    }
    mutated
}

fn change_lines(lines: &mut Vec<String>, pool: &Pool, random: &mut Random) {
    if lines.is_empty() {
        lines.push(String::new());
    }
    let at = random.below(lines.len());
    let count = (1 + random.below(4)).min(lines.len() - at);
    match random.below(7) {
        0 => drop(lines.drain(at..at + count)),
        1 => {
            let copy = lines[at..at + count].to_vec();
            let to = random.below(lines.len() + 1);
            lines.splice(to..to, copy).for_each(drop);
        }
        2 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        3 => {
            // Deeper, below a new head.
            let heads = [
                "if tx < 3:",
                "for z in range(4):",
                "for z in T.unroll(4):",
                "for z in T.vectorized(4):",
                "while z < 8:",
                "else:",
                "with T.attr(0, \"x\", 1):",
            ];
            let indent = indent_of(&lines[at]);
            for line in &mut lines[at..at + count] {
                line.insert_str(0, "    ");
            }
            lines.insert(at, format!("{indent}{}", random.pick(&heads)));
        }
        4 => {
            for line in &mut lines[at..at + count] {
                if let Some(rest) = line.strip_prefix("    ") {
                    *line = rest.to_string();
                }
            }
        }
        _ => {
            // Lines of a seed, at the place's indentation.
            let indent = indent_of(&lines[at]);
            let from = random.below(pool.lines.len());
            let new = pool.lines[from..]
                .iter()
                .take(count)
                .map(|l| format!("{indent}{l}"));
            let new: Vec<String> = new.collect();
            lines.splice(at..at, new).for_each(drop);
        }
    }
}

fn change_tokens(lines: &mut [String], pool: &Pool, random: &mut Random) {
    if lines.is_empty() {
        return;
    }
    // Some tries to find a line that has tokens.
    let at = (0..4)
        .map(|_| random.below(lines.len()))
        .find(|at| !lines[*at].trim().is_empty());
    let Some(at) = at else { return };
    let other = random.below(lines.len());
    let indent = indent_of(&lines[at]);
    let mut own: Vec<String> = tokens(lines[at].trim_start())
        .into_iter()
        .map(str::to_string)
        .collect();
    if own.is_empty() {
        return;
    }
    let i = random.below(own.len());
    let kind = kind_of(&own[i]);
    match random.below(16) {
        0 => drop(own.remove(i)),
        1 => {
            let copy = own[i].clone();
            own.insert(random.below(own.len() + 1), copy);
        }
        2 => {
            let j = random.below(own.len());
            own.swap(i, j);
        }
        3 => own[i] = random.pick(&OPERATORS).to_string(),
        4 => own[i] = random.pick(&NUMBERS).to_string(),
        5 => own[i] = random.pick(&pool.words).clone(),
        6 => {
            // An operation around it.
            let word = if random.below(2) == 0 {
                random.pick(&pool.words).clone()
            } else {
                random.pick(&NUMBERS).to_string()
            };
            own[i] = format!("({} {} {word})", own[i], random.pick(&OPERATORS));
        }
        7 => {
            // A bracketed group of another line in its place.
            let group = match random.below(2) {
                0 => group_of(&lines[other], random),
                _ => group_of(&random.pick(&pool.lines).clone(), random),
            };
            if let Some(group) = group {
                own[i] = group;
            }
        }
        _ => {
            // One of its kind, of another line or of the seeds.
            let line: &String = if random.below(2) == 0 {
                &lines[other]
            } else {
                random.pick(&pool.lines)
            };
            let same: Vec<&str> = tokens(line).into_iter().filter(|t| kind_of(t) == kind).collect();
            if !same.is_empty() {
                own[i] = random.pick(&same).to_string();
            }
        }
    }
    lines[at] = format!("{indent}{}", own.concat());
}

const OPERATORS: [&str; 28] = [
    "+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=",
    " and ", " or ", " is ", " in ", " not in ", ",", ":", "=", ".", "@",
];

const NUMBERS: [&str; 26] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "31",
    "32",
    "33",
    "127",
    "128",
    "255",
    "256",
    "1023",
    "1024",
    "65536",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "170141183460469231731687303715884105728",
    "1e308",
    "0.5",
    "-1",
];

/// The text of a bracketed group, with the name before it.
fn group_of(line: &str, random: &mut Random) -> Option<String> {
    let starts: Vec<usize> = line
        .bytes()
        .enumerate()
        .filter(|(_, b)| matches!(b, b'(' | b'['))
        .map(|(i, _)| i)
        .collect();
    if starts.is_empty() {
        return None;
    }
    let start = *random.pick(&starts);
    let name = line[..start].trim_end_matches(|c| is_word(c) || c == '.').len();
    let mut depth = 0;
    for (i, b) in line.bytes().enumerate().skip(start) {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(line[name..=i].to_string());
        }
    }
    None
}

fn indent_of(line: &str) -> String {
    line[..line.len() - line.trim_start_matches(' ').len()].to_string()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '"' | '\'')
}

fn kind_of(token: &str) -> u8 {
    match token.chars().next() {
        Some(c) if c.is_ascii_digit() => 0,
        Some(c) if c.is_alphabetic() || c == '_' => 1,
        Some('"' | '\'') => 2,
        Some(' ') => 3,
        _ => 4,
    }
}

/// Names with their dots, numbers, texts, spaces, and single other characters; joined they are the line.
fn tokens(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')))
        } else if first == '"' || first == '\'' {
            rest[1..].find(first).map(|i| i + 2)
        } else if first == ' ' {
            rest.find(|c| c != ' ')
        } else {
            Some(first.len_utf8())
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        out.push(token);
        rest = after;
    }
    out
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
