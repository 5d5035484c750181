//! The header's table: transactions and configuration.

use super::conditions::NOT_FOUND;
use super::run::{Outcome, Run, Stop};

pub(super) fn transactions(run: &mut Run<'_>) -> Outcome {
    if run.tables.filesystem.start_transaction.is_none() {
        return Err(Stop::Skip(String::from("start_transaction is not implemented")));
    }
    let cell = run.cell()?;
    let path = format!("{cell}/file");
    let fs = run.fs.clone();
    let transaction = match fs.start_transaction() {
        Ok(transaction) => transaction,
        Err(error) => {
            run.expect("start_transaction", &Err::<(), _>(error), None);
            return Ok(());
        }
    };
    run.expect(
        "get_transaction_for_path of a path in none",
        &fs.get_transaction_for_path(&path),
        NOT_FOUND,
    );
    if run.expect("add_to_transaction", &fs.add_to_transaction(&path, &transaction), None) {
        let found = fs.get_transaction_for_path(&path);
        run.expect("get_transaction_for_path", &found, None);
        run.expect_that(
            "get_transaction_for_path: the same transaction",
            found.is_ok_and(|found| found == transaction),
        );
        let found = fs.get_or_start_transaction_for_path(&path);
        if run.expect("get_or_start_transaction_for_path", &found, None) {
            run.expect_that(
                "get_or_start_transaction_for_path: the same transaction",
                found.is_ok_and(|found| found == transaction),
            );
        }
    }
    run.expect("end_transaction", &fs.end_transaction(&transaction), None);
    run.expect(
        "get_transaction_for_path of a path whose transaction has ended",
        &fs.get_transaction_for_path(&path),
        NOT_FOUND,
    );
    run.expect(
        "end_transaction of one that has ended",
        &fs.end_transaction(&transaction),
        NOT_FOUND,
    );
    run.expect(
        "add_to_transaction of one that has ended",
        &fs.add_to_transaction(&path, &transaction),
        NOT_FOUND,
    );
    Ok(())
}

pub(super) fn configuration(run: &mut Run<'_>) -> Outcome {
    let fs = run.fs.clone();
    let ops = run.tables.filesystem;
    if ops.get_filesystem_configuration_option.is_some() {
        run.expect(
            "get_filesystem_configuration_option of an unknown key",
            &fs.get_filesystem_configuration_option("no such option"),
            NOT_FOUND,
        );
    }
    let listed = fs.get_filesystem_configuration();
    if run.expect("get_filesystem_configuration", &listed, None)
        && let Ok(options) = listed
    {
        let keys = fs.get_filesystem_configuration_keys();
        if run.expect("get_filesystem_configuration_keys", &keys, None)
            && let Ok(keys) = keys
        {
            run.expect_that(
                "get_filesystem_configuration_keys: those of all options",
                keys.iter().eq(options.iter().map(|option| &option.name)),
            );
        }
        for option in &options {
            let found = fs.get_filesystem_configuration_option(&option.name);
            let what = format!("get_filesystem_configuration_option of {}", option.name);
            if run.expect(&what, &found, None) {
                run.expect_that(
                    format_args!("{what}: as it is listed"),
                    found.is_ok_and(|found| found == *option),
                );
            }
        }
    }
    Ok(())
}
