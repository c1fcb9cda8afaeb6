//! Each synchronization of each kernel with values (the filetests', those of `kernels/` that compute asynchronously, the
//! examples), taken out in turn, must be reported by the simulator or stand in `tests/mutants.txt` with the reason why it is
//! redundant. Run by `cargo xtask mutants`; a mutant that is not reported is a line as soon as it is known.
//!
//! | variable | meaning |
//! |---|---|
//! | `TIRX_FILTER` | words of which the mutant's name must hold one, with commas between them; a word behind `!` must not be in it |
//! | `TIRX_THREADS` | how many mutants run at a time: as many as the machine has processors |
//! | `TIRX_MESSAGES` | if set, the message of each mutant that is reported is a line too, and so is each mutant that is not run |
//! | `TIRX_ROOT` | the folder that holds `tests/kernels`, `tests/mutants.txt` and `kernels`, where it is not the one that the executable was built in |

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tirx_tests::asynchronous::CASES;
use tirx_tests::mutants::{EXAMPLES, Example, Mutant, Outcome, mutants, of_text, redundant};
use tirx_tests::{Case, Test, asynchronous, only, root};

#[test]
#[ignore = "minutes; cargo xtask mutants runs it"]
fn every_synchronization_is_needed_or_known_not_to_be() {
    let filter = Filter::new(&std::env::var("TIRX_FILTER").unwrap_or_default());
    let list = std::fs::read_to_string(root().join("tests/mutants.txt")).expect("the list");
    let allowed = redundant(&list);
    let filetests = filetests();
    let mut jobs = jobs(&filetests);
    if !filter.takes_all() {
        jobs.retain(|job| filter.takes(&job.mutant.name));
    }
    let tally = Mutex::new(Tally {
        allowed,
        ..Tally::default()
    });
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let outcome = job.run();
                    tally
                        .lock()
                        .expect("no thread panicked")
                        .count(&job.mutant, outcome, start.elapsed());
                }
            });
        }
    });
    let mut tally = tally.into_inner().expect("no thread panicked");
    let unseen = tally.allowed.keys().filter(|name| !tally.seen.contains(*name));
    for name in unseen.cloned().collect::<Vec<_>>() {
        if filter.takes_all() {
            tally.fail(format!(
                "{name}: listed, and there is no such mutant that is silent"
            ));
        }
    }
    println!(
        "{} reported, {} redundant as listed, {} not run; {} failed",
        tally.reported,
        tally.known,
        tally.not_run,
        tally.failures.len()
    );
    assert!(
        tally.failures.is_empty(),
        "{} mutants:\n{}",
        tally.failures.len(),
        tally.failures.join("\n")
    );
}

/// The filetests whose kernels run.
fn filetests() -> Vec<Case> {
    let paths = tirx_tests::files::filetests().expect("a folder");
    let cases = paths.iter().map(|path| Case::read(path).expect("a filetest"));
    cases
        .filter(|case| case.errors.is_empty() && !case.tests.contains(&Test::Messages))
        .collect()
}

/// All mutants, those that run longest first.
fn jobs(filetests: &[Case]) -> Vec<Job<'_>> {
    let mut jobs = Vec::new();
    for case in CASES.iter().rev() {
        let text = only(case.text, case.entry).expect("the file has its kernel");
        let file = case.file.trim_end_matches(".py");
        let job = |mut mutant: Mutant| {
            // Functions that several kernels call are mutants of each.
            if mutant.kernel != case.entry {
                let of = format!("{file} {}", case.entry);
                mutant.name = mutant.name.replacen(file, &of, 1);
            }
            Job {
                mutant,
                subject: Subject::Asynchronous(case),
            }
        };
        jobs.extend(of_text(file, &text).into_iter().map(job));
    }
    for case in filetests {
        let job = |mutant| Job {
            mutant,
            subject: Subject::Filetest(case),
        };
        jobs.extend(mutants(case).into_iter().map(job));
    }
    for example in EXAMPLES {
        let text = example.text().expect("an example kernel");
        let file = format!("kernels/{}", example.file.trim_end_matches(".py"));
        let mutants = of_text(&file, &text).into_iter();
        jobs.extend(mutants.filter(|m| m.kernel == example.entry).map(|mutant| Job {
            mutant,
            subject: Subject::Example(example),
        }));
    }
    jobs
}

fn threads() -> usize {
    let asked = std::env::var("TIRX_THREADS").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Which names are chosen.
struct Filter {
    with: Vec<String>,
    without: Vec<String>,
}

impl Filter {
    fn new(words: &str) -> Filter {
        let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
        let (without, with): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('!'));
        Filter {
            with: with.into_iter().map(String::from).collect(),
            without: without.into_iter().map(|word| word[1..].to_string()).collect(),
        }
    }

    fn takes_all(&self) -> bool {
        self.with.is_empty() && self.without.is_empty()
    }

    fn takes(&self, name: &str) -> bool {
        (self.with.is_empty() || self.with.iter().any(|word| name.contains(word)))
            && !self.without.iter().any(|word| name.contains(word))
    }
}

/// A mutant, and the runs that execute it.
struct Job<'a> {
    mutant: Mutant,
    subject: Subject<'a>,
}

#[derive(Clone, Copy)]
enum Subject<'a> {
    Filetest(&'a Case),
    Asynchronous(&'a asynchronous::Case),
    Example(&'a Example),
}

impl Job<'_> {
    fn run(&self) -> Outcome {
        match self.subject {
            Subject::Filetest(case) => self.mutant.run(case).expect("expectations"),
            Subject::Asynchronous(case) => self.mutant.run_case(case),
            Subject::Example(example) => self.mutant.run_example(example).expect("the example runs"),
        }
    }
}

/// The outcomes of the mutants so far.
#[derive(Default)]
struct Tally {
    reported: usize,
    known: usize,
    not_run: usize,
    failures: Vec<String>,
    /// Mutants that may be silent, with the reasons; `*` for a kernel's name stands for every kernel of its file, `* *` for those of
    /// all files.
    allowed: BTreeMap<String, String>,
    /// The entries that were used.
    seen: BTreeSet<String>,
}

impl Tally {
    fn count(&mut self, mutant: &Mutant, outcome: Outcome, time: Duration) {
        let Mutant { name, line, .. } = mutant;
        // `file kernel statement`, or `file kernel function statement` where the kernel calls a function.
        let (of, statement) = name.split_once(" T.").expect("a statement begins with `T.`");
        let file = of.split(' ').next().unwrap_or_default();
        let of_all = format!("{file} * T.{statement}");
        // Whichever of a kernel's statements of this text it is.
        let text = statement
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .trim_end();
        let anywhere = format!("* * T.{text}");
        let entry = [name, &of_all, &anywhere]
            .into_iter()
            .find(|n| self.allowed.contains_key(*n));
        match outcome {
            Outcome::Reported(_) if entry == Some(name) => {
                self.seen.insert(name.clone());
                self.fail(format!(
                    "{name}: is reported, though the list says it is redundant"
                ));
            }
            Outcome::Reported(message) => {
                self.reported += 1;
                if std::env::var_os("TIRX_MESSAGES").is_some() {
                    self.say(&format!(
                        "{name}: reported: {}",
                        message.lines().next().unwrap_or_default()
                    ));
                }
            }
            Outcome::NotRun => {
                self.not_run += 1;
                if std::env::var_os("TIRX_MESSAGES").is_some() {
                    self.say(&format!("{name}: not run"));
                }
            }
            Outcome::Silent if entry.is_some() => {
                self.seen.extend(entry.cloned());
                self.known += 1;
            }
            Outcome::Silent => self.fail(format!("{name}: nothing is reported (line {line})")),
            Outcome::Wrong(what) => self.fail(format!("{name}: {what}, and no fault (line {line})")),
        }
        if time > Duration::from_secs(30) {
            self.say(&format!("{name}: took {} s", time.as_secs()));
        }
    }

    fn fail(&mut self, what: String) {
        self.say(&what);
        self.failures.push(what);
    }

    /// Prints a line immediately, so that an interrupted run has reported its results.
    fn say(&self, what: &str) {
        let mut out = std::io::stdout();
        let written = writeln!(out, "{what}").and_then(|()| out.flush());
        written.expect("standard output is there");
    }
}

/// An example that synchronizes is in the table.
#[test]
fn all_examples_that_synchronize_are_there() {
    let mut found = Vec::new();
    for file in ["vector.py", "reduce.py", "matrix.py", "image.py"] {
        let text = std::fs::read_to_string(root().join("kernels").join(file)).expect("an example kernel");
        found.extend(of_text(file, &text).into_iter().map(|m| m.kernel));
    }
    found.dedup();
    let table: Vec<&str> = EXAMPLES.iter().map(|e| e.entry).collect();
    assert_eq!(found, table);
}
