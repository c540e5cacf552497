// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/rows.h"

#include <utility>

#include "store/duckdb/type.h"
#include "store/duckdb/value.h"

namespace gpusonde::store::duckdb {
namespace {

class ResultRows final : public Rows {
 public:
  ResultRows(Connection connection, Handle<duckdb_result> result)
      : connection_(std::move(connection)), result_(std::move(result)), chunk_(library().destroy_data_chunk) {
    const idx_t count = library().column_count(result_.out());
    for (idx_t i = 0; i < count; ++i) {
      const Handle<duckdb_logical_type> type(library().destroy_logical_type,
                                             library().column_logical_type(result_.out(), i));
      types_.push_back(DescribeType(library(), type.get()));
      columns_.push_back({library().column_name(result_.out(), i), TypeName(types_.back())});
    }
  }

  std::span<const Column> columns() const override { return columns_; }

  Result<bool> Next() override {
    if (done_) return false;
    ++row_;
    while (row_ >= rows_in_chunk_) {
      ASSIGN_OR_RETURN(const bool more, FetchChunk());
      if (!more) return false;
    }
    return true;
  }

  bool IsNull(size_t column) const override { return vectors_[column].IsNull(row_); }
  int64_t Int64(size_t column) const override { return Int64Of(vectors_[column], row_); }
  double Float64(size_t column) const override { return Float64Of(vectors_[column], row_); }
  std::string_view Text(size_t column) const override { return TextOf(vectors_[column], row_); }

  Id128 Id(size_t column) const override {
    const Vector& vector = vectors_[column];
    if (vector.type->id != DUCKDB_TYPE_UUID || vector.IsNull(row_)) return {};
    return IdOf(vector.At<duckdb_hugeint>(row_));
  }

  size_t ListSize(size_t column) const override {
    const Vector& vector = vectors_[column];
    if (vector.type->id != DUCKDB_TYPE_LIST || vector.IsNull(row_)) return 0;
    return vector.At<duckdb_list_entry>(row_).length;
  }

  std::vector<Id128> IdList(size_t column) const override {
    return List<Id128>(column, [](const Vector& elements, uint64_t row) {
      return elements.type->id == DUCKDB_TYPE_UUID ? IdOf(elements.At<duckdb_hugeint>(row)) : Id128{};
    });
  }
  std::vector<int64_t> Int64List(size_t column) const override {
    const Vector& vector = vectors_[column];
    if (vector.type->id == DUCKDB_TYPE_LIST && !vector.IsNull(row_)) {
      // Lists of whole numbers without NULLs lie in memory as they are returned; those of packed kernels have
      // hundreds of thousands of elements.
      const Vector& elements = vector.children[0];
      if (elements.type->id == DUCKDB_TYPE_BIGINT && elements.validity == nullptr) {
        const auto entry = vector.At<duckdb_list_entry>(row_);
        const auto* first = static_cast<const int64_t*>(elements.data) + entry.offset;
        return {first, first + entry.length};
      }
    }
    return List<int64_t>(column, Int64Of);
  }

  std::string Display(size_t column) const override { return DisplayOf(library(), vectors_[column], row_); }
  std::string Json(size_t column) const override { return JsonOf(library(), vectors_[column], row_); }

 private:
  const Library& library() const { return connection_.library(); }

  Result<bool> FetchChunk() {
    vectors_.clear();
    row_ = 0;
    rows_in_chunk_ = 0;
    chunk_ = Handle<duckdb_data_chunk>(library().destroy_data_chunk, library().fetch_chunk(result_.get()));
    if (chunk_.get() == nullptr) {
      done_ = true;
      const char* message = library().result_error(result_.out());
      if (message != nullptr && *message != '\0') return Fail(ErrorOf(message));
      return false;
    }
    rows_in_chunk_ = library().data_chunk_get_size(chunk_.get());
    for (size_t i = 0; i < types_.size(); ++i)
      vectors_.emplace_back(library(), types_[i], library().data_chunk_get_vector(chunk_.get(), i));
    return true;
  }

  template <class T, class Read>
  std::vector<T> List(size_t column, Read&& read) const {
    std::vector<T> list;
    const Vector& vector = vectors_[column];
    if (vector.type->id != DUCKDB_TYPE_LIST || vector.IsNull(row_)) return list;
    const auto entry = vector.At<duckdb_list_entry>(row_);
    list.reserve(entry.length);
    for (uint64_t i = 0; i < entry.length; ++i) list.push_back(read(vector.children[0], entry.offset + i));
    return list;
  }

  // Destroyed from the last to the first: chunk, result, connection.
  Connection connection_;
  Handle<duckdb_result> result_;
  std::vector<Type> types_;
  std::vector<Column> columns_;
  Handle<duckdb_data_chunk> chunk_;
  std::vector<Vector> vectors_;
  uint64_t rows_in_chunk_ = 0;
  uint64_t row_ = UINT64_MAX;  // so that the first Next() makes it 0
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Rows> MakeRows(Connection connection, Handle<duckdb_result> result) {
  return std::make_unique<ResultRows>(std::move(connection), std::move(result));
}

}  // namespace gpusonde::store::duckdb
