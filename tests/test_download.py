"""Data sets are fetched whole and right, or not at all. The server is this machine's own."""

import bz2
import dataclasses
import errno
import io
import lzma
import os
import socket
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream.cli import main
from kernelstream.stream import DATASETS, Dataset, download, files, load, read
from kernelstream.stream.download import DownloadError
from kernelstream.stream.files import find, get, rows_sha256

TRAIN, TEST = b"+1 1:0.5 3:2\n-1 2:1\n", b"-1 1:0 2:4.0\n"
X = np.array([[0.5, 0, 2], [0, 1, 0], [0, 4, 0]])
Y = np.array([1, -1, -1])
SHA = rows_sha256(csr_array(X), Y)


class Web(ThreadingHTTPServer):
    """Serves what `pages` has: bytes, or a function that is given the request. Counts requests."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.asked = {}, []

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is part of the test


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.lstrip("/")
        self.server.asked.append(name)
        page = self.server.pages.get(name)
        if page is None:
            self.send_error(404)
        elif callable(page):
            page(self)
        else:
            self.answer(page)

    def answer(self, body, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def web(monkeypatch, tmp_path):
    """A server, and a machine that has no data set yet, may reach out, and does not wait between tries."""
    server = Web()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    for name in (
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "KERNELSTREAM_OFFLINE",
        "KERNELSTREAM_DATA",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def tiny(web, monkeypatch):
    """Register a data set of three rows whose parts are at the given names of the server."""

    def register(*parts, **changes):
        record = Dataset("tiny", 3, 3, addresses=tuple(web.base + part for part in parts), sha256=SHA)
        monkeypatch.setitem(DATASETS, "tiny", dataclasses.replace(record, **changes))

    return register


def refused(folder, name="tiny"):
    """Why a data set could not be got; whatever it is, nothing is left behind and the message says what to do."""
    before = sorted(folder.glob("*"))
    with pytest.raises(DownloadError) as caught:
        get(name, folder)
    assert sorted(folder.glob("*")) == before
    message = str(caught.value)
    for part in (f"{name}.libsvm.xz in {folder}", f"kernelstream data get {name}", "KERNELSTREAM_DATA"):
        assert part in message
    assert "\n" not in message
    return message


# ---------------------------------------------------------------- what goes well


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name.replace("_", "."), body)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "pages",
    [
        {"tiny": TRAIN + TEST},
        {"tiny": TRAIN, "tiny.t": TEST},
        {"tiny": TRAIN.rstrip(), "tiny.t": TEST.rstrip()},
        {"tiny.bz2": bz2.compress(TRAIN), "tiny.t.bz2": bz2.compress(TEST)},
        {"tiny.bz2": bz2.compress(TRAIN) + bz2.compress(TEST)},
        {"tiny.xz": lzma.compress(TRAIN), "tiny.t": TEST},
        {"tiny.zip#rows.txt": zipped(readme_txt=b"not this", rows_txt=TRAIN + TEST)},
        {"tiny.zip#rows.data": zipped(rows_data=b"0.5,0,2,1\n0,1.00,0,0\r\n0,4,0.0,0\n\n")},
        {"tiny.arff": b"% of\n@attribute day {1,2}\n@data\n0.5,0,2,UP\n0,1,0,DOWN\n 0, 4, 0, DOWN\n"},
        {"tiny": b"1.0 1:0.500000 2:0.0 3:2e0\r\n-1 2:1 3:0\r\n-1 2:4"},  # other text, the same rows
        {"tiny": TRAIN + TEST + b"1 3:9\n"},  # a file may hold more than the rows to use
    ],
)
def test_a_data_set_comes_in_many_forms(web, tiny, tmp_path, pages):
    web.pages = {name.partition("#")[0]: page for name, page in pages.items()}
    tiny(*pages)
    folder = tmp_path / "made" / "here"
    path = get("tiny", folder)
    assert path == folder / "tiny.libsvm.xz"
    assert [*folder.iterdir()] == [path]
    assert lzma.decompress(path.read_bytes()).count(b"\n") >= 3
    got, y = load("tiny", folder)
    np.testing.assert_array_equal(got, X)
    np.testing.assert_array_equal(y, Y)
    asked = len(web.asked)
    assert get("tiny", folder) == path
    assert len(web.asked) == asked == len(pages)


def test_a_redirect_is_followed(web, tiny, tmp_path):
    def moved(request):
        request.send_response(302)
        request.send_header("Location", "/there")
        request.end_headers()

    web.pages = {"tiny": moved, "there": TRAIN + TEST}
    tiny("tiny")
    assert get("tiny", tmp_path).is_file()


def test_progress_is_told(web, tiny, tmp_path):
    body = TRAIN + TEST
    web.pages = {"tiny": body}
    tiny("tiny")
    told = []
    get("tiny", tmp_path, progress=lambda *state: told.append(state))
    assert told == [(web.base + "tiny", 0, None), (web.base + "tiny", len(body), len(body))]


def test_the_file_can_be_read_by_others(web, tiny, tmp_path):
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    mask = os.umask(0o022)
    try:
        assert get("tiny", tmp_path).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


# ---------------------------------------------------------------- where it is looked for, where it goes


def test_load_looks_in_the_folder_then_in_the_cache_then_fetches(web, tiny, tmp_path, monkeypatch, capsys):
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    given, cache = tmp_path / "given", tmp_path / "cache"

    load("tiny")
    assert find("tiny") == cache / "tiny.libsvm.xz"
    assert capsys.readouterr().err == f"kernelstream: fetching {web.base}tiny\n"

    given.mkdir()
    load("tiny", given)  # the cache has it
    assert [*given.iterdir()] == []
    assert len(web.asked) == 1
    assert capsys.readouterr().err == ""

    (cache / "tiny.libsvm.xz").unlink()
    monkeypatch.setenv("KERNELSTREAM_DATA", str(given))
    load("tiny")
    assert find("tiny") == given / "tiny.libsvm.xz"
    assert [*cache.iterdir()] == []

    other = tmp_path / "other"
    other.mkdir()
    (other / "tiny.libsvm").write_bytes(b"7 1:1\n8 1:1\n9 1:1\n")
    assert load("tiny", other)[1].tolist() == [7, 8, 9]  # the argument wins
    assert next(read("tiny", data_dir=other)).y.min() == 7
    assert len(web.asked) == 2


def test_a_folder_that_is_not_there_is_not_made_by_load(web, tiny, tmp_path, monkeypatch):
    """It may be mistyped; `get` makes it, because it was asked to."""
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path / "mistyped"))
    load("tiny")
    assert not (tmp_path / "mistyped").exists()
    assert (tmp_path / "cache" / "tiny.libsvm.xz").is_file()


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/far/cache"}, "/far/cache/kernelstream"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/me/.cache/kernelstream"),
        ("darwin", {}, "/home/me/Library/Caches/kernelstream"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/kernelstream"),
    ],
)
def test_the_cache_folder_is_where_the_platform_wants_it(monkeypatch, platform, variables, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr("pathlib.Path.home", lambda: files.Path("/home/me"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert files.cache_folder().as_posix() == expected


# ---------------------------------------------------------------- what goes wrong


def cut(request):
    request.answer(TRAIN, length=len(TRAIN + TEST))


def reset(request):
    request.answer(TRAIN, length=10**6)
    request.wfile.flush()
    # A close that throws away what was not sent is a reset.
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    request.connection.close()


def half_a_chunk(request):
    request.protocol_version = "HTTP/1.1"
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"ff\r\n+1 1:0.5")


def silent(request):
    request.server.woken.wait(5)


def no_http(request):
    request.wfile.write(b"what?\r\n\r\n")


def busy(request):
    request.send_error(503)


@pytest.mark.parametrize("page", [cut, reset, half_a_chunk, silent, no_http, busy])
def test_a_transfer_that_breaks_is_tried_again_then_given_up(web, tiny, tmp_path, monkeypatch, page):
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    web.woken = threading.Event()
    web.pages = {"tiny": TRAIN, "tiny.t": page}
    tiny("tiny", "tiny.t")
    message = refused(tmp_path)
    assert f"{web.base}tiny.t" in message
    assert "tried 3 times" in message
    assert web.asked == ["tiny", "tiny.t", "tiny.t", "tiny.t"]
    assert refused(tmp_path / "new").count("tried 3 times") == 1
    assert [*(tmp_path / "new").iterdir()] == []

    tries = iter([page, page])
    web.pages["tiny.t"] = lambda request: next(tries, lambda r: r.answer(TEST))(request)
    assert load("tiny", tmp_path)[1].tolist() == Y.tolist()
    web.woken.set()


def test_a_short_transfer_says_how_short(web, tiny, tmp_path):
    web.pages = {"tiny": cut}
    tiny("tiny")
    assert f"broke off after {len(TRAIN)} of {len(TRAIN + TEST)} bytes" in refused(tmp_path)


def test_what_is_not_there_is_asked_for_once(web, tiny, tmp_path):
    tiny("tiny")
    assert "answered 404 Not Found" in refused(tmp_path)
    assert web.asked == ["tiny"]


def test_wrong_rows_are_refused(web, tiny, tmp_path):
    web.pages = {"tiny": (TRAIN + TEST).replace(b"0.5", b"0.5000000001")}
    tiny("tiny")
    message = refused(tmp_path)
    assert "gave other rows than tiny has" in message
    assert SHA in message
    assert web.asked == ["tiny"]  # it would be the same again
    with pytest.raises(FileNotFoundError, match="gave other rows"):
        load("tiny", tmp_path)


BZ2 = bz2.compress(TRAIN + TEST)


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        ("tiny", b"<html><body>Log in to this network</body></html>", "gave something else than tiny"),
        ("tiny", b"", "it has 0 rows, but tiny has 3"),
        ("tiny", TRAIN, "it has 2 rows, but tiny has 3"),
        ("tiny", b"\0\xff\xfe" * 50, "gave something else than tiny"),
        ("tiny", b"1 1:1\n1 4:1\n1 1:1\n", "n_features is 3"),
        ("tiny", b"1 1:nan\n1 2:1\n1 1:1\n", "not finite"),
        ("tiny", b"1 1:1 " * 10**5, "larger than the data set can be"),
        ("tiny", lzma.compress(TRAIN + TEST), "gave something else than tiny"),
        ("tiny.bz2", b"<html>", "cannot be unpacked"),
        ("tiny.bz2", BZ2[:-8], "cannot be unpacked"),
        ("tiny.bz2", BZ2[:20] + b"\0\0\0\0" + BZ2[24:], "cannot be unpacked"),
        ("tiny.bz2", bz2.compress(b"0" * 10**7), "unpacks to more than the data set can be"),
        ("tiny.xz", b"\xfd7zXZ\x00", "cannot be unpacked"),
        ("tiny.zip#rows.data", b"PK\3\4", "cannot be unpacked"),
        ("tiny.zip#rows.data", zipped(other_data=b"1,2,3,0\n"), "cannot be unpacked"),
        ("tiny.zip#rows.data", zipped(rows_data=b"0" * 10**4), "unpacks to more than"),
        (
            "tiny.arff",
            b"@data\n1,2,3,UP\n1,2,3,SIDEWAYS\n",
            "line 3 is no row of the data set: '1,2,3,SIDEWAYS'",
        ),
        ("tiny.arff", b"1,\xff,3,UP\n", "line 1 is no row"),
        ("tiny.data", b"<html>\n", "line 1 is no row"),
    ],
)
def test_garbage_is_refused(web, tiny, tmp_path, name, body, why):
    web.pages = {name.partition("#")[0]: body}
    tiny(name)
    assert why in refused(tmp_path)


# ---------------------------------------------------------------- hostile answers


def redirect(place):
    """A redirect to a place, given as text or as bytes; None for a redirect to nowhere."""

    def answer(request):
        raw = b"HTTP/1.0 302 Found\r\n"
        if place is not None:
            where = place.replace("BASE", request.server.base) if isinstance(place, str) else place
            raw += b"Location: " + (where.encode() if isinstance(where, str) else where) + b"\r\n"
        request.wfile.write(raw + b"Content-Length: 0\r\n\r\n")

    return answer


def raw(*parts):
    """Just these bytes; what cannot be sent because the client has gone is dropped."""

    def answer(request):
        for part in parts:
            request.wfile.write(part)

    return answer


def drip(request):
    """A byte now and then, for 30 seconds at most or until the test is over."""
    request.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
    for _ in range(600):
        request.wfile.write(b"1")
        if request.server.woken.wait(0.05):
            return


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE = {
    "redirect: address with a bracket open": redirect("http://[::1/"),
    "redirect: no IPv6 address in brackets": redirect("http://[not an address]/"),
    "redirect: port that is a word": redirect("http://127.0.0.1:port/"),
    "redirect: port too large": redirect("http://127.0.0.1:99999999/"),
    "redirect: negative port": redirect("http://127.0.0.1:-1/"),
    "redirect: empty label in the host": redirect("http://a..b/"),
    "redirect: label of 70 characters": redirect(f"http://{'a' * 70}.invalid/"),
    "redirect: long host beyond ASCII": redirect(f"http://{'ü' * 70}.invalid/"),
    "redirect: bytes that are no text": redirect(b"http://\xff\xfe\xfd/"),
    "redirect: control characters": redirect(b"http://127.0.0.1\x01\x7f/"),
    "redirect: blank in the host": redirect("http://127.0.0.1 evil/"),
    "redirect: no host": redirect("http:///tiny"),
    "redirect: only slashes": redirect("//"),
    "redirect: file": redirect("file:///etc/passwd"),
    "redirect: ftp": redirect("ftp://127.0.0.1:1/tiny"),
    "redirect: unknown scheme": redirect("gopher://127.0.0.1/"),
    "redirect: data": redirect("data:text/plain,1"),
    "redirect: loop": redirect("BASEtiny"),
    "redirect: no location": redirect(None),
    "redirect: location of a megabyte": redirect("BASE" + "a" * 10**6),
    "status: no HTTP": raw(b"what?\r\n\r\n"),
    "status: nothing": raw(),
    "status: no number": raw(b"HTTP/1.1 OK\r\n\r\n"),
    "status: 99999": raw(b"HTTP/1.1 99999 Far\r\n\r\n"),
    "status: unknown version": raw(b"HTTP/9.9 200 OK\r\n\r\n"),
    "status: line without an end": raw(b"HTTP/1.1 200 " + b"a" * 10**6),
    "status: 100 without an end": raw(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 100),
    "status: no content": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status: part of the content": raw(b"HTTP/1.1 206 Partial Content\r\n\r\n" + TRAIN),
    "headers: a line of a megabyte": raw(OK + b"A: " + b"a" * 10**6),
    "headers: a thousand": raw(OK + b"A: b\r\n" * 1000 + b"\r\n"),
    "headers: no text": raw(OK + bytes(range(128, 256)) + b"\r\n\r\n\0"),
    "length: 5,000 digits": raw(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + TRAIN),
    "length: beyond 64 bits": raw(OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n" + TRAIN),
    "length: negative": raw(OK + b"Content-Length: -5\r\n\r\n" + TRAIN),
    "chunks: size that is no number": raw(CHUNKED + b"zz\r\n"),
    "chunks: size beyond 64 bits": raw(CHUNKED + b"f" * 40 + b"\r\n" + TRAIN),
    "chunks: negative size": raw(CHUNKED + b"-5\r\n" + TRAIN),
    "chunks: size without an end": raw(CHUNKED + b"1" * 10**6),
    "body: more than the data set can be": raw(OK + b"\r\n", *[b"1 1:1\n" * 1000] * 100),
    "body: gzip that was not asked for": raw(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0garbage"),
    "body: a byte now and then": drip,
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_answer_is_an_error_of_ours_and_the_next_data_set_is_fetched(
    web, tiny, tmp_path, monkeypatch, capsys, answer
):
    monkeypatch.setattr(download, "TIMEOUT", 2.0)
    monkeypatch.setattr(download, "PATIENCE", 0.3, raising=False)
    web.woken = threading.Event()
    web.pages = {"tiny": answer, "good": TRAIN + TEST}
    tiny("good", name="good")
    monkeypatch.setitem(DATASETS, "good", DATASETS["tiny"])
    tiny("tiny")
    message = refused(tmp_path)
    assert f"{web.base}tiny" in message
    assert message.isprintable()
    assert len(message) < 1000

    code, out, err = run(capsys, "data", "get", "tiny", "good", "--data", tmp_path)
    web.woken.set()
    assert code == 2
    assert out == f"good: {tmp_path / 'good.libsvm.xz'}\n"
    assert f"kernelstream: error: no file tiny.libsvm.xz in {tmp_path}, and it could not be fetched" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("scheme", ["https", "nonsense", "http"])
def test_an_address_that_cannot_be_asked_is_an_error_of_ours(web, tiny, tmp_path, scheme):
    """Encryption that the server does not speak, an unknown scheme, a malformed port in the catalogue."""
    port = "x" if scheme == "http" else web.server_port
    address = f"{scheme}://127.0.0.1:{port}/tiny"
    tiny(addresses=(address,))
    assert address in refused(tmp_path)


def test_an_archive_that_breaks_its_reader_is_refused(web, tiny, tmp_path, monkeypatch):
    """Whatever the reader raises."""

    def broken(*_):
        raise OverflowError("a number in the archive")

    web.pages = {"tiny.zip": zipped(rows_data=b"1,2,3,0\n")}
    monkeypatch.setattr(zipfile, "ZipFile", broken)
    tiny("tiny.zip#rows.data")
    assert "cannot be unpacked" in refused(tmp_path)


def test_a_machine_without_network_is_told_at_once(tiny, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    tiny(addresses=(f"http://127.0.0.1:{port}/tiny",))
    assert f"cannot reach http://127.0.0.1:{port}/tiny" in refused(tmp_path)
    tiny(addresses=("http://no-such-host.invalid/tiny",))
    assert "cannot reach http://no-such-host.invalid/tiny" in refused(tmp_path)


def test_offline_nothing_is_asked(web, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSTREAM_OFFLINE", "1")
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    assert "KERNELSTREAM_OFFLINE is set" in refused(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert web.asked == []
    monkeypatch.setenv("KERNELSTREAM_OFFLINE", "0")
    assert get("tiny", tmp_path).is_file()


def test_a_folder_that_cannot_be_written(web, tiny, tmp_path):
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    (tmp_path / "file").write_text("in the way")
    assert "cannot write into" in refused(tmp_path / "file")
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert "Permission denied" in refused(locked)
    load("tiny", locked)
    assert (tmp_path / "cache" / "tiny.libsvm.xz").is_file()


def test_a_full_disk_leaves_nothing(web, tiny, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refused(tmp_path)


def test_an_interrupt_leaves_nothing(web, tiny, tmp_path):
    def interrupt(address, done, total):
        if done:
            raise KeyboardInterrupt

    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    with pytest.raises(KeyboardInterrupt):
        get("tiny", tmp_path, progress=interrupt)
    assert [*tmp_path.iterdir()] == []


def test_two_processes_may_fetch_at_once(web, tiny, tmp_path, monkeypatch):
    both = threading.Barrier(2, timeout=60)

    def together(request):
        both.wait()
        request.answer(TRAIN + TEST)

    web.pages = {"tiny": together}
    tiny("tiny")
    script = f"""if True:
        from kernelstream.stream import DATASETS, Dataset, files
        DATASETS["tiny"] = Dataset("tiny", 3, 3, addresses=("{web.base}tiny",), sha256="{SHA}")
        print(files.get("tiny", {str(tmp_path)!r}))
    """
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    monkeypatch.setattr(download, "TIMEOUT", 60)  # until the other process is there
    path = get("tiny", tmp_path)
    assert other.communicate(timeout=60)[0].strip() == str(path)
    assert [*tmp_path.iterdir()] == [path]
    assert lzma.decompress(path.read_bytes()) == TRAIN + TEST
    assert web.asked == ["tiny", "tiny"]


# ---------------------------------------------------------------- checksums


def test_the_checksum_is_of_rows_not_of_how_they_are_stored():
    rows = csr_array(X)
    stored = csr_array(
        (np.array([2.0, 0.5, 0, 1, 4]), np.array([2, 0, 1, 1, 1]), np.array([0, 3, 4, 5])), (3, 3)
    )
    before = stored.data.copy()
    assert rows_sha256(stored, Y.astype(float)) == rows_sha256(rows, Y)
    np.testing.assert_array_equal(stored.data, before)
    for other, labels in (
        (rows * (1 + 2**-52), Y),
        (rows, -Y),
        (rows[[0, 2, 1]], Y),
        (rows[:, [1, 0, 2]], Y),
        (rows[:2], Y[:2]),
    ):
        assert rows_sha256(other, labels) != SHA


@pytest.mark.parametrize("name", [name for name, record in DATASETS.items() if not record.shipped])
def test_checksums_are_those_of_the_data_sets(data_file, name):
    record = DATASETS[name]
    assert record.addresses
    assert all(address.startswith("https://") for address in record.addresses)
    assert rows_sha256(*files.read_file(data_file(name), record)) == record.sha256


def as_published(name, text):
    """The parts of a data set as its collection has them, from our file: a stand-in for the collection."""
    lines = text.splitlines(keepends=True)
    if name in ("spambase", "elec2"):
        rows = []
        for line in lines:
            label, *pairs = line.decode().split()
            values = ["0"] * DATASETS[name].features
            for pair in pairs:
                index, _, value = pair.partition(":")
                values[int(index) - 1] = value
            classes = {"spambase": {"1": "1", "-1": "0"}, "elec2": {"1": "UP", "-1": "DOWN"}}[name]
            rows.append(",".join([*values, classes[label]]))
        table = "\n".join(rows).encode()
        header = (
            b"@relation electricity\n@attribute day {1,2,3,4,5,6,7}\n@attribute class {UP,DOWN}\n\n@data\n"
        )
        return [zipped(spambase_data=table)] if name == "spambase" else [header + table]
    return [b"".join(lines[:1243]), b"".join(lines[1243:])] if name == "svmguide3" else [text]


@pytest.fixture
def source(data_file, name):
    """The file of a data set; to be asked for before `web`, which takes all data away."""
    return data_file(name)


@pytest.mark.parametrize("name", ["svmguide3", "spambase", "elec2", "abalone_scale"])
def test_data_sets_as_published_pass_their_checksums(source, web, tmp_path, monkeypatch, name):
    """From the collection's form, through the transfer, to the rows that `load` gives."""
    record = DATASETS[name]
    names = [address.rpartition("/")[2] for address in record.addresses]
    bodies = as_published(name, lzma.decompress(source.read_bytes()))
    web.pages = dict(zip((n.partition("#")[0] for n in names), bodies, strict=True))
    here = tuple(web.base + n for n in names)
    monkeypatch.setitem(DATASETS, name, dataclasses.replace(record, addresses=here))
    get(name, tmp_path)
    (got, y), (expected, labels) = load(name, tmp_path), load(name, source.parent)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(y, labels)


# ---------------------------------------------------------------- the command line


def run(capsys, *argv):
    code = main([*map(str, argv)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_data_get_and_list(web, tiny, tmp_path, capsys):
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    path = tmp_path / "tiny.libsvm.xz"

    code, out, err = run(capsys, "data", "list", "--data", tmp_path)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["name", "rows", "features", "task", "size", "from", "file"]
    assert lines[1 + list(DATASETS).index("tiny")].split() == [
        *("tiny", "3", "3", "classification", "127.0.0.1", "not", "here")
    ]
    assert {line.split()[0] for line in lines[1:-2]} == set(DATASETS)
    assert lines[-1] == f"The data folder is {tmp_path}"

    code, out, err = run(capsys, "data", "get", "tiny", "digits", "--data", tmp_path)
    assert (code, out) == (0, f"tiny: {path}\ndigits: comes with scikit-learn\n")
    assert err == f"kernelstream: fetching {web.base}tiny\n"
    assert run(capsys, "data", "get", "tiny", "tiny", "--data", tmp_path) == (0, f"tiny: {path}\n", "")

    code, out, _ = run(capsys, "data", "list", "tiny", "--data", tmp_path)
    assert out.splitlines()[1].split()[4:] == [str(path.stat().st_size), "bytes", "127.0.0.1", str(path)]


def test_data_get_goes_on_after_a_failure(web, tiny, tmp_path, capsys, monkeypatch):
    for name in list(DATASETS):
        monkeypatch.delitem(DATASETS, name)
    web.pages = {"tiny": TRAIN + TEST}
    tiny("missing")
    monkeypatch.setitem(
        DATASETS, "other", dataclasses.replace(DATASETS["tiny"], name="other", addresses=(web.base + "tiny",))
    )
    code, out, err = run(capsys, "data", "get", "all", "--data", tmp_path)
    assert code == 2
    assert out == f"other: {tmp_path / 'other.libsvm.xz'}\n"
    assert "kernelstream: error: no file tiny.libsvm.xz" in err
    assert err.count("\n") == 3


def test_data_says_what_would_be_right(tmp_path, capsys):
    assert "did you mean 'a9a'?" in run(capsys, "data", "get", "a9")[2]
    assert "did you mean 'german.numer" in run(capsys, "data", "list", "german")[2]
    assert "needs the names" in run(capsys, "data", "get")[2]
    assert "'list', 'get'" in run(capsys, "data", "fetch")[2]
    assert "--help" in run(capsys, "data")[2]


def test_a_run_finds_the_folder_it_is_given(web, tiny, tmp_path, capsys):
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    code, _, err = run(capsys, "run", "tiny", "--data", tmp_path, "--quiet", "--learner", "BOGD")
    assert code == 0, err
    assert (tmp_path / "tiny.libsvm.xz").is_file()


def test_data_get_on_a_terminal_shows_a_bar(web, tiny, tmp_path, capsys, monkeypatch):
    web.pages = {"tiny": TRAIN + TEST}
    tiny("tiny")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = run(capsys, "data", "get", "tiny", "--data", tmp_path)
    assert (code, out) == (0, f"tiny: {tmp_path / 'tiny.libsvm.xz'}\n")
    assert "fetching" not in err
