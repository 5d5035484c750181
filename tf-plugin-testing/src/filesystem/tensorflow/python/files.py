# Whole files --------------------------------------------------------------------------------------------------


@case
def python_write_file_and_read_file(place):
    for size in (0, 1, 4096, 1048576, 3000001):
        path = place("file-%d" % size)
        tf.io.write_file(path, payload(size))
        same("tf.io.read_file of %d bytes" % size, tf.io.read_file(path).numpy(), payload(size))
        same("the length of %d bytes" % size, gfile.stat(path).length, size)


@case
def python_write_file_makes_directories(place):
    tf.io.write_file(place("new", "directory", "file"), b"content")
    same("what was written", read(place("new", "directory", "file")), b"content")
    same("isdir of the new directory", gfile.isdir(place("new", "directory")), True)


@case
def python_text(place):
    text = "first line\nzweite Zeile: äöü\n\nlast without an end"
    write(place("text"), text, "w")
    with gfile.GFile(place("text")) as file:
        same("size()", file.size(), len(text.encode()))
        same("readline()", file.readline(), "first line\n")
        same("tell() after a line", file.tell(), 11)
        same("the other lines", list(file), ["zweite Zeile: äöü\n", "\n", "last without an end"])
        same("read() at the end", file.read(), "")
        file.seek(0)
        same("read()", file.read(), text)


@case
def python_seek_and_tell(place):
    data = payload(100000)
    write(place("file"), data)
    with gfile.GFile(place("file"), "rb") as file:
        same("read(5)", file.read(5), data[:5])
        same("tell()", file.tell(), 5)
        file.seek(99990)
        same("read(100) near the end", file.read(100), data[99990:])
        same("tell() at the end", file.tell(), 100000)
        file.seek(-7, 2)
        same("read() after a seek from the end", file.read(), data[-7:])
        file.seek(50000)
        file.seek(-10, 1)
        same("read(20) after a relative seek", file.read(20), data[49990:50010])
        file.seek(0)
        same("all of it", file.read(), data)


@case
def python_tell_while_writing(place):
    with gfile.GFile(place("file"), "wb") as file:
        for count in range(1, 6):
            file.write(b"12345")
            same("tell() after %d bytes" % (5 * count), file.tell(), 5 * count)
            if count == 3:
                file.flush()


@case
def python_all_byte_values(place):
    data = bytes(range(256)) * 3 + b"\r\n\0\n\r\x1a\xff\xfe"
    write(place("file"), data)
    same("the content", read(place("file")), data)


@case
def python_many_small_writes(place):
    pieces = [payload(size % 41, size) for size in range(4000)]
    with gfile.GFile(place("file"), "wb") as file:
        for number, piece in enumerate(pieces):
            file.write(piece)
            if number % 1000 == 999:
                file.flush()
    same("the content", read(place("file")), b"".join(pieces))


@case
def python_one_large_write(place):
    data = payload(16 << 20)
    write(place("file"), data)
    same("the length", gfile.stat(place("file")).length, len(data))
    same("tf.io.read_file", tf.io.read_file(place("file")).numpy(), data)
    with gfile.GFile(place("file"), "rb") as file:
        pieces = iter(lambda: file.read(3333333), b"")
        same("the pieces", b"".join(pieces), data)
        file.seek(9 << 20)
        same("a piece in the middle", file.read(70000), data[9 << 20:][:70000])


@case
def python_replaced_by_a_shorter_one(place):
    write(place("file"), payload(300000))
    write(place("file"), b"short")
    same("the content", read(place("file")), b"short")
    same("the length", gfile.stat(place("file")).length, 5)
    write(place("file"), b"")
    same("the content after writing nothing", read(place("file")), b"")


@case
def python_append(place):
    needs_append(place)
    for number in range(8):
        write(place("log"), b"line %d\n" % number, "ab")
    same("the content", read(place("log")), b"".join(b"line %d\n" % number for number in range(8)))
    write(place("log"), b"", "ab")
    same("the length after appending nothing", gfile.stat(place("log")).length, 56)
    write(place("log"), payload(200000), "ab")
    same("the content after a long one", read(place("log"))[56:], payload(200000))


@case
def python_append_to_nothing(place):
    write(place("new"), b"content", "ab")
    same("the content", read(place("new")), b"content")


@case
def python_empty_file(place):
    write(place("empty"), b"")
    same("exists", gfile.exists(place("empty")), True)
    stat = gfile.stat(place("empty"))
    same("length and is_directory", (stat.length, stat.is_directory), (0, False))
    same("GFile.read", read(place("empty")), b"")
    same("tf.io.read_file", tf.io.read_file(place("empty")).numpy(), b"")
    same("TFRecordDataset", values(tf.data.TFRecordDataset(place("empty"))), [])
    gfile.copy(place("empty"), place("copy"))
    same("a copy", (gfile.exists(place("copy")), read(place("copy"))), (True, b""))


@case
def python_open_file_is_there(place):
    needs_visible_at_create(place)
    writer = gfile.GFile(place("open"), "wb")
    writer.write(b"12345")
    together(
        lambda: same("exists", gfile.exists(place("open")), True),
        lambda: same("stat", gfile.stat(place("open")).is_directory, False),
        lambda: same("listdir", names(gfile.listdir(place())), ["open"]),
        lambda: same("glob", gfile.glob(place("o*")), [place("open")]),
    )
    writer.close()


@case
def python_flushed_is_read(place):
    needs_visible_at_flush(place)
    writer = gfile.GFile(place("file"), "wb")
    for count in range(1, 5):
        writer.write(b"%d" % count * 1000)
        writer.flush()
        wanted = b"".join(b"%d" % number * 1000 for number in range(1, count + 1))
        same("what another reads after flush %d" % count, read(place("file")), wanted)
    writer.close()


@case
def python_half_a_file_is_never_seen(place):
    if place.visible_at_create:
        raise Skip("files are declared to be visible at create")
    write(place("file"), b"the old content")
    writer = gfile.GFile(place("file"), "wb")
    writer.write(b"new" * 1000)
    if not place.visible_at_flush:
        writer.flush()
    # The process that writes it may be refused.
    with contextlib.suppress(PRECONDITION):
        same("what another reads before the close", read(place("file")), b"the old content")
    writer.close()
    same("what another reads after the close", read(place("file")), b"new" * 1000)


@case
def python_closed_twice(place):
    writer = gfile.GFile(place("file"), "wb")
    writer.write(b"content")
    writer.close()
    writer.close()
    same("the content", read(place("file")), b"content")


@case
def python_dropped_file(place):
    dropped = gfile.GFile(place("file"), "wb")
    dropped.write(b"of an error path")
    del dropped
    write(place("file"), b"written again")
    same("the content", read(place("file")), b"written again")
    gfile.remove(place("file"))
    same("exists after remove", gfile.exists(place("file")), False)


@case
def python_two_writers(place):
    with gfile.GFile(place("a"), "wb") as one, gfile.GFile(place("b"), "wb") as two:
        for number in range(200):
            one.write(b"a%d," % number)
            two.write(b"b%d," % number)
    for name in (b"a", b"b"):
        same("the content of %s" % name.decode(), read(place(name.decode())), b"".join(name + b"%d," % n for n in range(200)))


@case
def python_new_content_is_read(place):
    for number in range(4):
        write(place("file"), b"%d" % number * (number + 1))
        same("the content of version %d" % number, read(place("file")), b"%d" % number * (number + 1))
        same("the length of version %d" % number, gfile.stat(place("file")).length, number + 1)
