//! The header's table: transactions and configuration.

use super::conditions::NOT_FOUND;
use super::run::{Run, Step, needs};

pub(super) fn transactions(run: &mut Run<'_>) -> Step {
    let starts = run.fs.tables().filesystem.start_transaction.is_some();
    needs(starts, "start_transaction is not implemented")?;
    let path = format!("{}/file", run.cell()?);
    let fs = run.fs.clone();
    let one = run.must("start_transaction", fs.start_transaction())?;
    let found = fs.get_transaction_for_path(&path);
    run.expect("get_transaction_for_path of a path in none", &found, NOT_FOUND);
    if run.expect("add_to_transaction", &fs.add_to_transaction(&path, &one), None) {
        let found = fs.get_transaction_for_path(&path).map(|found| found == one);
        run.gives("get_transaction_for_path: the same transaction", found, true);
        let found = fs.get_or_start_transaction_for_path(&path).map(|found| found == one);
        run.gives("get_or_start_transaction_for_path: the same transaction", found, true);
    }
    run.expect("end_transaction", &fs.end_transaction(&one), None);
    let found = fs.get_transaction_for_path(&path);
    run.expect("get_transaction_for_path of a path whose transaction has ended", &found, NOT_FOUND);
    run.expect("end_transaction of one that has ended", &fs.end_transaction(&one), NOT_FOUND);
    let added = fs.add_to_transaction(&path, &one);
    run.expect("add_to_transaction of one that has ended", &added, NOT_FOUND);
    Ok(())
}

pub(super) fn configuration(run: &mut Run<'_>) -> Step {
    let fs = run.fs.clone();
    if run.fs.tables().filesystem.get_filesystem_configuration_option.is_some() {
        let found = fs.get_filesystem_configuration_option("no such option");
        run.expect("get_filesystem_configuration_option of an unknown key", &found, NOT_FOUND);
    }
    let options = run.must("get_filesystem_configuration", fs.get_filesystem_configuration())?;
    let keys = options.iter().map(|option| option.name.clone()).collect();
    run.gives("get_filesystem_configuration_keys", fs.get_filesystem_configuration_keys(), keys);
    for option in options {
        let found = fs.get_filesystem_configuration_option(&option.name);
        let what = format!("get_filesystem_configuration_option of {}", option.name);
        run.gives(what, found, option);
    }
    Ok(())
}
