//! What TensorFlow's own code does with files, call by call, as observed.

use super::conditions::FP;
use super::directories::{COPY_FILE, RENAME_FILE, transfer};
use super::run::{Run, Step};
use super::steps::{create, created, open, pattern};
use super::tree::delete_tree;
use tf_plugin_core::Code;

/// Writes as TensorFlow's writer of checkpoint data does: it flushes and closes a second time.
fn write_twice_closed(run: &mut Run<'_>, path: &str, content: &[u8]) -> Step {
    let mut writer = create(run, path)?;
    for piece in content.chunks(64 << 10) {
        run.must("append", writer.append(piece))?;
    }
    run.must("flush", writer.flush())?;
    run.must("close", writer.close())?;
    run.expect("flush after close", &writer.flush(), None);
    run.expect("a second close", &writer.close(), None);
    Ok(())
}

/// Saves checkpoints, and reads them as a restore does.
pub(super) fn checkpoint(run: &mut Run<'_>) -> Step {
    let dir = run.bare_cell()?;
    for step in [1, 10, 2] {
        save(run, &dir, step)?;
    }
    for step in [1, 10, 2] {
        restore(run, &dir, step)?;
    }
    // The manager keeps two.
    for name in ["ckpt-1.index", "ckpt-1.data-00000-of-00001"] {
        let path = format!("{dir}/{name}");
        run.must(format_args!("delete_file of {path}"), run.fs.delete_file(&path))?;
    }
    restore(run, &dir, 10)?;
    let want = ["ckpt-10.index", "ckpt-2.index"].map(|name| format!("{dir}/{name}"));
    run.matches(&format!("{dir}/ckpt-*.index"), want);
    let newest = b"model_checkpoint_path: \"ckpt-2\"";
    run.holds("the newest checkpoint", &format!("{dir}/checkpoint"), newest);
    Ok(())
}

fn data(step: usize) -> Vec<u8> {
    pattern(200_000 + step)
}

fn save(run: &mut Run<'_>, dir: &str, step: usize) -> Step {
    let prefix = format!("{dir}/ckpt-{step}");
    let temp = format!("{prefix}_temp");
    run.must(format_args!("create_dir of {temp}"), run.fs.create_dir(&temp))?;
    let part = format!("{temp}/part-00000-of-00001");
    // Each file is written under a name of its own and renamed twice.
    for (suffix, content) in [("data-00000-of-00001", data(step)), ("index", pattern(300))] {
        let written = format!("{part}.{suffix}.tempstate{}", 4711 + step);
        write_twice_closed(run, &written, &content)?;
        transfer(run, &RENAME_FILE, &written, &format!("{part}.{suffix}"))?;
        transfer(run, &RENAME_FILE, &format!("{part}.{suffix}"), &format!("{prefix}.{suffix}"))?;
    }
    run.must(format_args!("delete_dir of the emptied {temp}"), run.fs.delete_dir(&temp))?;
    run.is_gone("delete_dir", &temp);
    let state = format!("{dir}/checkpoint");
    let new = format!("{state}.tmp{:032x}", step);
    run.write(&new, format!("model_checkpoint_path: \"ckpt-{step}\""))?;
    transfer(run, &RENAME_FILE, &new, &state)
}

fn restore(run: &mut Run<'_>, dir: &str, step: usize) -> Step {
    let index = format!("{dir}/ckpt-{step}.index");
    let size = run.must(format_args!("get_file_size of {index}"), run.fs.get_file_size(&index))?;
    let reader = open(run, &index)?;
    let want = pattern(300);
    // The footer first, then from the start.
    for (offset, n) in [(size.saturating_sub(48), 48), (0, 100), (100, 200)] {
        let (bytes, status) = reader.read_with_status(offset, n);
        let what = format!("read of {n} bytes at {offset} of the index");
        run.expect(&what, &status, None);
        let start = usize::try_from(offset).unwrap_or_default();
        run.expect_bytes(what, &bytes, want.get(start..start + n).unwrap_or_default());
    }
    run.holds("restored", &format!("{dir}/ckpt-{step}.data-00000-of-00001"), &data(step));
    Ok(())
}

pub(super) fn cache_lock_file(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let lock = format!("{cell}/cache_0.lockfile");
    let mut writer = create(run, &lock)?;
    run.must("append", writer.append(b"Created at: 1700000000"))?;
    // TensorFlow never closes it.
    drop(writer);
    run.write(&format!("{cell}/cache_0.data-00000-of-00001"), b"data")?;
    run.must("delete_file of a file that was dropped without a close", run.fs.delete_file(&lock))?;
    run.is_gone("delete_file", &lock);
    Ok(())
}

pub(super) fn event_file_is_read_while_it_grows(run: &mut Run<'_>) -> Step {
    run.needs_visible_at_flush()?;
    let (path, mut writer) = created(run)?;
    let mut position = 0;
    // Each reader stays open while the file grows.
    let mut reader;
    for piece in [&b"one"[..], b"three", b"seventeen"] {
        run.must("append", writer.append(piece))?;
        run.must("flush", writer.flush())?;
        // TensorBoard opens the file again and continues where it stopped.
        reader = open(run, &path)?;
        let (bytes, status) = reader.read_with_status(position, 1000);
        run.expect("read to the end of a file that grows", &status, Some(Code::OutOfRange));
        run.expect_bytes("read to the end of a file that grows", &bytes, piece);
        position += piece.len() as u64;
    }
    run.must("close", writer.close())
}

pub(super) fn saved_model(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let model = format!("{cell}/model/1");
    for dir in ["variables", "assets"] {
        run.make_dirs(&format!("{model}/{dir}"))?;
    }
    run.write(&format!("{model}/variables/variables.data-00000-of-00001"), pattern(5000))?;
    run.write(&format!("{model}/variables/variables.index"), pattern(100))?;
    run.write(&format!("{model}/assets/vocabulary.txt"), b"a\nb\n")?;
    if run.may_change() {
        let new = format!("{model}/saved_model.pb.tmp0");
        run.write(&new, pattern(3000))?;
        transfer(run, &RENAME_FILE, &new, &format!("{model}/saved_model.pb"))?;
    } else {
        run.write(&format!("{model}/saved_model.pb"), pattern(3000))?;
    }
    // A server polls for the newest version.
    for _ in 0..2 {
        run.lists("the versions", &format!("{cell}/model"), &["1"]);
        let found = run.fs.path_exists(format!("{model}/saved_model.pb"));
        run.expect("path_exists of saved_model.pb", &found, None);
    }
    run.lists("the model", &model, &["assets", "saved_model.pb", "variables"]);
    run.holds("loaded", &format!("{model}/assets/vocabulary.txt"), b"a\nb\n");
    if !run.may_change() {
        return Ok(());
    }
    transfer(run, &COPY_FILE, &format!("{model}/saved_model.pb"), &format!("{cell}/copy.pb"))?;
    run.holds("gfile.copy", &format!("{cell}/copy.pb"), &pattern(3000));
    delete_tree(run, &format!("{cell}/model"))?;
    run.is_gone("gfile.rmtree", &model);
    Ok(())
}

pub(super) fn walk(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let mut found = Vec::new();
    let mut queue = vec![cell.clone()];
    while let Some(dir) = queue.pop() {
        let listed = run.fs.get_children(&dir);
        for name in run.must(format_args!("get_children of {dir}"), listed)? {
            let path = format!("{dir}/{}", name.escape_ascii());
            let is_directory = run.fs.is_directory(&path);
            if is_directory.is_ok() {
                queue.push(path.clone());
            } else {
                run.expect(format_args!("is_directory of {path}"), &is_directory, FP);
            }
            found.push(path.into_bytes());
        }
        if found.len() > 100 {
            run.deviation("gfile.walk finds ever more");
            return Ok(());
        }
    }
    let mut want = vec!["file", "empty_file", "full", "full/file"];
    if run.has_directories() {
        want.push("empty");
    }
    let want: Vec<_> = want.iter().map(|name| format!("{cell}/{name}")).collect();
    run.names("gfile.walk", Ok(found), &want);
    Ok(())
}
