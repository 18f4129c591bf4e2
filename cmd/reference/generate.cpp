// generate_reference DIRECTORY: writes man pages, for scdoc, and completions of mailroom into DIRECTORY, laid
// out as in /usr/share. Removes the man pages of another version first.

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "cmd/reference/generated_files.hpp"

namespace mailroom::cmd {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void write_pages(const CommandReference& program, const fs::path& directory) {
  // Remove the pages of former commands.
  fs::remove_all(directory);
  write(directory / "man1" / "mailroom.1.scd", render_program_page(program));
  for (const auto& command : program.commands)
    write(directory / "man1" / ("mailroom-" + command.name + ".1.scd"), render_command_page(command));
  write(directory / "man5" / "mailroom.yaml.5.scd", render_configuration_page());
}

void generate(const fs::path& directory) {
  const auto program = read_reference();
  write_pages(program, directory / "man");
  write(directory / "bash-completion" / "completions" / "mailroom", render_bash_completion(program));
  write(directory / "zsh" / "site-functions" / "_mailroom", render_zsh_completion(program));
  write(directory / "fish" / "vendor_completions.d" / "mailroom.fish", render_fish_completion(program));
}

}  // namespace
}  // namespace mailroom::cmd

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate_reference DIRECTORY\n";
    return 2;
  }
  try {
    mailroom::cmd::generate(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "generate_reference: " << error.what() << '\n';
    return 1;
  }
}
