// Each command below another one has examples of its own.
#pragma once

#include <string>
#include <string_view>

namespace mailroom::cmd {

/// As ExampleText has them, of `mailroom message list` for example; empty for a path without any.
std::string subcommand_examples(std::string_view path);

}  // namespace mailroom::cmd
