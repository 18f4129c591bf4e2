// golden FILE.golden [--update] [--bin DIR]: runs the commands of a transcript and compares what they do
// with what it shows. It exits 0 when all is as shown, 1 when something differs, 2 when it cannot run.
//
// The file:
//   # text        a comment, up to the end of the line; the output above it ends here
//   #: database   a directive: the commands get a database of their own through PGDATABASE
//   $ command     run by /bin/sh; a line that ends with a backslash goes on in the next one
//   text          below a command: a line of its stdout
//   ! text        a line of its stderr, after all of stdout
//   ? 3           its exit status, last, when that is not 0
// A line of stdout that would read as one of these, or that begins with a backslash, stands behind a
// backslash; so does an empty line that ends an output, because empty lines above a command or a comment
// mean nothing. `\ no newline at the end` says so of the line above it (`! \ no newline ...` for stderr).
// --update rewrites the outputs and keeps comments, empty lines and commands.
//
// Each file has a fresh directory and an environment of its own: PATH (the directory of the mailroom binary
// first), HOME (the fresh directory), LC_ALL, TZ, PGHOST, PGPORT, PGUSER, the sanitizers' options, nothing
// else. There is no stdin and no terminal. A command that runs for a minute is killed. What a command
// leaves in the background lives until the end of the file, and must not write to stdout or stderr.
//
// Outputs are compared after these have been replaced:
//   the fresh directory -> <dir>, $PGHOST when it is a directory -> <socket>, the database's name ->
//   <database>, 2024-05-06T07:08:09Z and other ISO times -> <time>, `pid=12` and `pid 12` -> pid=<pid>, `in
//   12 ms`, `in 1m30s` -> in <duration>, 86 characters of base64url -> <token>, 64 hex digits -> <key>,
//   `(libcurl 7.88.1)` -> (libcurl <version>)

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

#include "normalise.hpp"
#include "process.hpp"
#include "transcript.hpp"

namespace mailroom::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds time_limit{60};

struct Options {
  fs::path file;
  fs::path bin;
  bool update = false;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read the file");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write the file");
}

/// A directory that goes away with its owner.
class Directory {
 public:
  Directory() {
    std::string name = "/tmp/golden.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory in /tmp");
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The newest PostgreSQL's own programs, for systems that keep createdb out of PATH; empty when none.
std::string server_programs() {
  std::error_code ignored;
  std::pair<int, std::string> newest{0, ""};
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const int version = std::atoi(entry.path().filename().c_str());
    if (fs::exists(entry.path() / "bin" / "createdb")) {
      newest = std::max(newest, {version, (entry.path() / "bin").string()});
    }
  }
  return newest.second;
}

std::vector<std::string> environment(const Options& options, const fs::path& home,
                                     const std::string& database) {
  std::string path = variable("PATH").empty() ? "/usr/local/bin:/usr/bin:/bin" : variable("PATH");
  if (!options.bin.empty()) path = fs::absolute(options.bin).string() + ":" + path;
  if (const auto programs = server_programs(); !programs.empty()) path += ":" + programs;
  std::vector<std::string> result{"PATH=" + path, "HOME=" + home.string(), "LC_ALL=C.UTF-8", "TZ=UTC"};
  for (const char* name : {"PGHOST", "PGPORT", "PGUSER", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (std::getenv(name) != nullptr) result.push_back(std::string(name) + "=" + variable(name));
  }
  if (!database.empty()) result.push_back("PGDATABASE=" + database);
  return result;
}

/// A database that exists as long as its owner; its name needs no quoting.
class Database {
 public:
  Database(Shell& shell, std::string name) : shell_(shell), name_(std::move(name)) {
    const Result made = shell_.run("createdb " + name_, time_limit);
    if (made.status != 0) throw std::runtime_error("createdb failed: " + made.err);
  }
  ~Database() {
    shell_.end_background();
    const Result dropped = shell_.run("dropdb --force --if-exists " + name_, time_limit);
    if (dropped.status != 0) std::cerr << "golden: dropdb failed: " << dropped.err;
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

 private:
  Shell& shell_;
  std::string name_;
};

void print_mismatch(const Options& options, const Step& step, const Lines& actual) {
  std::cout << options.file.string() << ':' << step.line << ": not as shown (- expected, + came)\n";
  for (const auto& line : step.command)
    std::cout << line << '\n';
  for (const auto& line : difference(step.expected, actual))
    std::cout << line << '\n';
  std::cout << '\n';
}

/// After the directory, whose name has a random part; one that SQL never quotes.
std::string database_beside(const fs::path& directory) {
  std::string name = "golden_" + directory.extension().string().substr(1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

/// Runs every step; with --update puts what came into the transcript. Returns how many steps differed.
int play(const Options& options, Transcript& transcript) {
  const Directory directory;
  const fs::path work = directory.path() / "work";
  fs::create_directory(work);
  const std::string database = transcript.database ? database_beside(directory.path()) : "";
  Places places{{work.string(), "<dir>"}};
  if (variable("PGHOST").starts_with("/")) places.emplace_back(variable("PGHOST"), "<socket>");
  if (!database.empty()) places.emplace_back(database, "<database>");

  Shell shell(work, environment(options, work, database));
  std::optional<Database> own_database;
  if (transcript.database) own_database.emplace(shell, database);
  int differing = 0;
  for (auto& step : transcript.steps) {
    Result result = shell.run(shell_text(step), time_limit);
    result.out = normalise(std::move(result.out), places);
    result.err = normalise(std::move(result.err), places);
    Lines actual = show(result);
    if (actual == step.expected) continue;
    ++differing;
    if (options.update) {
      step.expected = std::move(actual);
    } else {
      print_mismatch(options, step, actual);
    }
  }
  return differing;
}

std::optional<Options> parse_arguments(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--update") {
      options.update = true;
    } else if (arguments[i] == "--bin" && i + 1 < arguments.size()) {
      options.bin = arguments[++i];
    } else if (options.file.empty() && !arguments[i].starts_with("-")) {
      options.file = arguments[i];
    } else {
      return std::nullopt;
    }
  }
  if (options.file.empty()) return std::nullopt;
  return options;
}

int run(const Options& options) {
  Transcript transcript = parse(read_file(options.file));
  if (transcript.steps.empty()) throw std::runtime_error("there is no command in it");
  if (transcript.database && variable("MAILROOM_TEST_PG").empty()) {
    throw std::runtime_error("it needs a database\nhint: run this under scripts/with-postgres");
  }
  const int differing = play(options, transcript);
  if (options.update) {
    if (differing > 0) write_file(options.file, write(transcript));
    std::cout << options.file.string() << ": " << differing << " outputs rewritten\n";
    return 0;
  }
  return differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mailroom::golden

int main(int argc, char** argv) {
  using namespace mailroom::golden;
  const auto options = parse_arguments({argv + 1, argv + argc});
  if (!options) {
    std::cerr << "golden: cannot understand the arguments\n"
                 "hint: golden FILE.golden [--update] [--bin DIR]\n";
    return 2;
  }
  try {
    umask(022);
    return run(*options);
  } catch (const std::exception& error) {
    std::cerr << "golden: " << options->file.string() << ": " << error.what() << '\n';
    return 2;
  }
}
