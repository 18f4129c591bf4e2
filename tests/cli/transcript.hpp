#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::golden {

using Lines = std::vector<std::string>;

/// One command of a golden file with the lines around it, each exactly as it stands in the file.
struct Step {
  std::size_t line = 0;  ///< where `$ ` stands, counted from 1
  Lines before;          ///< comments and empty lines above the command
  Lines command;         ///< the lines of the command; the first still begins with `$ `
  Lines expected;        ///< the lines of its output
};

struct Transcript {
  std::vector<Step> steps;
  Lines after;            ///< comments and empty lines below the last output
  bool database = false;  ///< the file holds the directive `#: database`
};

/// What a command did.
struct Result {
  std::string out;
  std::string err;
  int status = 0;
};

/// Reads the text of a golden file. Throws std::runtime_error, naming the line, for text that belongs to
/// no command and for an unknown directive.
Transcript parse(std::string_view text);

/// The text of a golden file; parse() of it gives the same transcript again.
std::string write(const Transcript& transcript);

/// A step's command as the shell takes it: without `$ `, continued lines still on lines of their own.
std::string shell_text(const Step& step);

/// The lines that a golden file shows for a result.
Lines show(const Result& result);

/// A readable difference of two outputs: unchanged lines after two spaces, lines that were expected but
/// did not come after `- `, lines that came unexpected after `+ `.
Lines difference(const Lines& expected, const Lines& actual);

}  // namespace mailroom::golden
