//! The engine of the book: its steps, and the page that shows it.

#[path = "../examples/engine.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "an example has a `main`, and its engine is public"
)]
mod engine;

use engine::{Engine, Model};
use tirx_kernels::sampling::Options;
use tirx_rt::Device;

/// A step gives the token that a prompt of all tokens before it gives, also beside another sequence and in a row that was used before.
#[test]
fn steps_continue_prompts() {
    let stream = Device::new_simulator().default_stream();
    let engine = |rows| Engine::new(&stream, Model::random(&stream).unwrap(), rows, 64).unwrap();
    let (mut two, mut one) = (engine(2), engine(1));
    let mut tokens = [vec![7, 8, 9], vec![1; 20]];
    for (row, tokens) in tokens.iter_mut().enumerate() {
        let first = two.begin(row, tokens, Options::greedy()).unwrap();
        tokens.push(first);
    }
    for step in 0..6 {
        if step == 3 {
            two.end(0).unwrap();
            tokens[0] = vec![3, 1, 4, 1, 5];
            let first = two.begin(0, &tokens[0], Options::greedy()).unwrap();
            tokens[0].push(first);
        }
        for (tokens, next) in tokens.iter_mut().zip(two.step().unwrap()) {
            assert_eq!(
                next,
                one.begin(0, tokens, Options::greedy()).unwrap(),
                "behind {tokens:?}"
            );
            tokens.push(next);
        }
    }
}

#[test]
fn the_page_shows_the_whole_example() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let page = read("../docs/book/src/engine.md");
    let blocks: Vec<&str> = page
        .split("```rust,no_run\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.join("\n"), read("examples/engine.rs"));
}
