//! Transactions and configuration.

use super::conditions::NOT_FOUND;
use super::run::Run;

impl Run<'_> {
    pub(super) fn transactions(&mut self) {
        if self.tables.filesystem.start_transaction.is_none() {
            return;
        }
        let cell = self.cell();
        let path = format!("{cell}/file");
        match self.fs.start_transaction() {
            Ok(transaction) => {
                let fs = self.fs.clone();
                self.expect(
                    "get_transaction_for_path of a path in none",
                    &fs.get_transaction_for_path(&path),
                    NOT_FOUND,
                );
                let added = fs.add_to_transaction(&path, &transaction);
                if self.expect("add_to_transaction", &added, None) {
                    let found = fs.get_transaction_for_path(&path);
                    self.expect("get_transaction_for_path", &found, None);
                    let holds = found.is_ok_and(|found| found == transaction);
                    self.expect_that("get_transaction_for_path: the same transaction", holds);
                    let found = fs.get_or_start_transaction_for_path(&path);
                    if self.expect("get_or_start_transaction_for_path", &found, None) {
                        let holds = found.is_ok_and(|found| found == transaction);
                        let what = "get_or_start_transaction_for_path: the same transaction";
                        self.expect_that(what, holds);
                    }
                }
                self.expect("end_transaction", &fs.end_transaction(&transaction), None);
                let again = fs.end_transaction(&transaction);
                self.expect("end_transaction of one that has ended", &again, NOT_FOUND);
                let added = fs.add_to_transaction(&path, &transaction);
                self.expect("add_to_transaction of one that has ended", &added, NOT_FOUND);
            }
            Err(error) => {
                self.expect("start_transaction", &Err::<(), _>(error), None);
            }
        }
    }

    pub(super) fn configuration(&mut self) {
        let fs = self.fs.clone();
        let ops = self.tables.filesystem;
        if ops.get_filesystem_configuration_option.is_some() {
            let found = fs.get_filesystem_configuration_option("no such option");
            let what = "get_filesystem_configuration_option of an unknown key";
            self.expect(what, &found, NOT_FOUND);
        }
        let listed = fs.get_filesystem_configuration();
        if self.expect("get_filesystem_configuration", &listed, None)
            && let Ok(options) = listed
        {
            let keys = fs.get_filesystem_configuration_keys();
            if self.expect("get_filesystem_configuration_keys", &keys, None)
                && let Ok(keys) = keys
            {
                let holds = keys.iter().eq(options.iter().map(|option| &option.name));
                self.expect_that("get_filesystem_configuration_keys: those of all options", holds);
            }
            for option in &options {
                let found = fs.get_filesystem_configuration_option(&option.name);
                let what = format!("get_filesystem_configuration_option of {}", option.name);
                if self.expect(&what, &found, None) {
                    let holds = found.is_ok_and(|found| found == *option);
                    self.expect_that(format_args!("{what}: as it is listed"), holds);
                }
            }
        }
    }
}
