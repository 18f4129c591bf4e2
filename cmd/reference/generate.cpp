// generate_reference FOLDER: writes man pages and completions of mailroom into FOLDER, laid out as below
// /usr/share. What another version left there is removed first.

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "cmd/reference/completions.hpp"
#include "cmd/reference/man_pages.hpp"

namespace mailroom {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void write_pages(const CommandReference& program, const fs::path& folder) {
  // A page of a command that is gone must not stay.
  fs::remove_all(folder);
  write(folder / "man1" / (program.name + ".1"), render_program_page(program));
  for (const auto& command : program.commands) {
    write(folder / "man1" / (program.name + "-" + command.name + ".1"), render_command_page(command));
  }
  write(folder / "man5" / "mailroom.yaml.5", render_configuration_page());
}

void generate(const fs::path& folder) {
  const auto program = read_reference();
  write_pages(program, folder / "man");
  write(folder / "bash-completion" / "completions" / "mailroom", render_bash_completion(program));
  write(folder / "zsh" / "site-functions" / "_mailroom", render_zsh_completion(program));
  write(folder / "fish" / "vendor_completions.d" / "mailroom.fish", render_fish_completion(program));
}

}  // namespace
}  // namespace mailroom

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate_reference FOLDER\n";
    return 2;
  }
  try {
    mailroom::generate(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "generate_reference: " << error.what() << '\n';
    return 1;
  }
}
