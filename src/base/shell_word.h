// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde {

// The text as one word of a POSIX shell, for commands that a person may copy: as it is if it holds only
// letters, digits and marks that mean nothing to a shell, else in single quotes.
std::string ShellWord(std::string_view text);

// A command line without the folders of its files, which are often long and alike: "python3 train.py --seed
// 1".
std::string WithoutFolders(std::string_view command);

}  // namespace gpusonde
