//! Random operations, on the filesystem and on a model.

use super::run::{Run, Step, needs};
use crate::filesystem::model::{run as run_both, sequence};
use proptest::test_runner::{Config, TestError, TestRunner};
use std::cell::Cell;

/// How many sequences a case tries, unless `PROPTEST_CASES` says more.
const SEQUENCES: u32 = 64;

pub(super) fn random_operations(run: &mut Run<'_>) -> Step {
    let ops = run.fs.tables().filesystem;
    macro_rules! needed {
        ($($op:ident)*) => {$(
            needs(ops.$op.is_some(), concat!(stringify!($op), " is not implemented"))?;
        )*};
    }
    needed! {
        new_random_access_file new_writable_file new_appendable_file create_dir delete_file delete_dir stat get_children
    }
    run.needs_real_directories()?;
    run.needs_visible_at_create()?;
    run.needs_append()?;
    let cell = run.bare_cell()?;
    let default = Config::default();
    let cases =
        if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { SEQUENCES };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 1024, ..default };
    let number = Cell::new(0_u32);
    let (host, fs) = (run.host, run.fs.clone());
    let tried = TestRunner::new(config).run(&sequence(), |ops| {
        number.set(number.get() + 1);
        let root = format!("{cell}/seq{}", number.get());
        fs.create_dir(&root).map_err(|error| {
            proptest::test_runner::TestCaseError::fail(format!("create_dir of {root}: {error:#}"))
        })?;
        run_both(host, &root, &ops)?;
        let _ = fs.delete_recursively(&root);
        Ok(())
    });
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => {
            run.deviation(format_args!("the shortest sequence of operations that fails: {reason}"))
        }
        Err(TestError::Abort(reason)) => run.deviation(format_args!("gave up: {reason}")),
    }
    Ok(())
}
