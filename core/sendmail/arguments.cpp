// Options have one letter. Those of a table take a value, behind the letter or as the next argument, or
// behind it alone.

#include "sendmail/arguments.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace mailroom::sendmail {
namespace {

constexpr std::string_view flags = "iGmntUvs";            // may stand together: -ti
constexpr std::string_view with_value = "fFrBNRVOhLCXp";  // -f ada, -fada
constexpr std::string_view with_attached = "obqAde";      // -oi, -q15m

Mode mode_of(std::string_view value) {
  if (value == "m") return Mode::mail;
  if (value == "s") return Mode::smtp;
  if (value == "p") return Mode::queue;
  if (value == "i") return Mode::nothing;
  if (value == "d" || value == "D")
    throw Error(ExitCode::usage, "sendmail is no daemon here", "the service is mailroom submission");
  throw Error(ExitCode::usage, fmt::format("there is no mode -b{}", value),
              "-bm takes a mail, -bs speaks SMTP, -bp lists what waits");
}

void take(char option, const std::string& value, Arguments& arguments) {
  switch (option) {
    case 'f':
    case 'r':
      arguments.sender = value == "<>" ? std::string() : value;
      break;
    case 'F':
      arguments.name = value;
      break;
    case 'b':
      arguments.mode = mode_of(value);
      break;
    case 'q':
      arguments.mode = Mode::nothing;
      break;
    case 'O':
    case 'o':
      if (value == "i" || value == "IgnoreDots" || value == "IgnoreDots=true") arguments.ends_at_dot = false;
      break;
    default:
      break;
  }
}

void take_flags(std::string_view letters, const std::string& whole, Arguments& arguments) {
  for (const char letter : letters) {
    if (flags.find(letter) == std::string_view::npos)
      throw Error(ExitCode::usage, fmt::format("sendmail takes no option '{}'", whole),
                  "an address that begins with a hyphen comes after --");
    if (letter == 't') arguments.reads_recipients = true;
    if (letter == 'i') arguments.ends_at_dot = false;
  }
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& given) {
  Arguments arguments;
  auto each = given.begin();
  for (; each != given.end() && each->size() > 1 && each->front() == '-'; ++each) {
    if (*each == "--") {
      ++each;
      break;
    }
    const char option = (*each)[1];
    const auto rest = each->substr(2);
    if (with_attached.find(option) != std::string_view::npos) {
      take(option, rest, arguments);
    } else if (with_value.find(option) == std::string_view::npos) {
      take_flags(each->substr(1), *each, arguments);
    } else if (!rest.empty()) {
      take(option, rest, arguments);
    } else if (each + 1 == given.end()) {
      throw Error(ExitCode::usage, fmt::format("the option -{} needs a value", option));
    } else {
      ++each;
      take(option, *each, arguments);
    }
  }
  arguments.recipients.assign(each, given.end());
  return arguments;
}

}  // namespace mailroom::sendmail
