# Names --------------------------------------------------------------------------------------------------------


def named(place, *odd):
    for name in odd:
        write(place(name), name.encode())
    same("listdir", names(gfile.listdir(place())), sorted(odd))
    for name in odd:
        same("exists of %r" % name, gfile.exists(place(name)), True)
        same("the content of %r" % name, read(place(name)), name.encode())
        same("tf.io.read_file of %r" % name, tf.io.read_file(place(name)).numpy(), name.encode())
    for number, name in enumerate(odd):
        gfile.makedirs(place("dir-%d" % number, name))
        gfile.rename(place(name), place("dir-%d" % number, name, name))
        same("a directory of that name", names(gfile.listdir(place("dir-%d" % number))), [name])
    same("listdir after the renames", names(gfile.listdir(place())), sorted("dir-%d" % n for n in range(len(odd))))


@case
def python_names_with_spaces(place):
    named(place, "with space", " leading", "trailing ", "two  spaces")


@case
def python_names_beyond_ascii(place):
    named(place, "zażółć", "日本語", "🦀", "e\u0301 in two", "\u00e9 in one")
    write(place("日本語.txt"), b"")
    same("glob", gfile.glob(place("*本*.txt")), [place("日本語.txt")])


@case
def python_names_with_wildcards(place):
    named(place, "star*", "what?", "[list]", "[^x]", "back\\slash")


@case
def python_names_of_uris(place):
    named(place, "100%", "%41", "%2F", "a+b", "a&b=c", "hash#tag", "a:b", "at@sign", "q=1?", "semi;colon")


@case
def python_names_with_signs(place):
    named(place, "comma,", "quote'\"", "$HOME", "~", "`tick`", "(round)", "{curly}", "<angle>", "pipe|", "-dash", "...", ".hidden")


@case
def python_names_differ_in_case(place):
    named(place, "name", "Name", "NAME")


@case
def python_long_names(place):
    named(place, "x" * 200, "x" * 199)


@case
def python_deep_directories(place):
    deep = place(*["directory"] * 40)
    gfile.makedirs(deep)
    write(deep + "/leaf", b"deep")
    same("the content", read(deep + "/leaf"), b"deep")
    same("the directories of a walk", sum(1 for _ in gfile.walk(place("directory"))), 40)


@case
def python_untidy_names(place):
    gfile.makedirs(place("sub"))
    write(place("sub", "..", "file"), b"here")
    same("a file written by way of ..", read(place("file")), b"here")
    same("., .. and // in a path", read(place(".", "sub", ".", "..", "", "file")), b"here")
    same("listdir of ..", names(gfile.listdir(place("sub", ".."))), ["file", "sub"])
    same("isdir with / at the end", gfile.isdir(place("sub/")), True)
