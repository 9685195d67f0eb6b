"""UPDATE and DELETE over joins, as people write them on schemas like those published for practice: done, undone, done
again and undone, with every row of every table compared by its bytes each time."""

from __future__ import annotations

import pytest

from policies.errors import GoexError, InvalidInput, Unsupported
from runtimes.sql.mariadb import rows
from tests.runtimes.sql.mariadb.support import Base

RENTALS = """
CREATE TABLE country (country_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, country VARCHAR(50) NOT NULL);
CREATE TABLE city (city_id SMALLINT UNSIGNED PRIMARY KEY, city VARCHAR(50), country_id SMALLINT UNSIGNED NOT NULL,
 FOREIGN KEY (country_id) REFERENCES country (country_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE customer (customer_id SMALLINT UNSIGNED PRIMARY KEY, city_id SMALLINT UNSIGNED, name VARCHAR(45),
 active TINYINT(1) DEFAULT 1, last_update TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
 KEY (name), FOREIGN KEY (city_id) REFERENCES city (city_id));
CREATE TABLE film (film_id INT PRIMARY KEY, title VARCHAR(128), rental_rate DECIMAL(4,2), length SMALLINT,
 rating ENUM('G','PG','R') DEFAULT 'G', features SET('Trailers','Scenes'));
CREATE TABLE inventory (inventory_id INT PRIMARY KEY, film_id INT, FOREIGN KEY (film_id) REFERENCES film (film_id));
CREATE TABLE rental (rental_id INT PRIMARY KEY, inventory_id INT, customer_id SMALLINT UNSIGNED, returned DATETIME,
 FOREIGN KEY (inventory_id) REFERENCES inventory (inventory_id) ON DELETE CASCADE,
 FOREIGN KEY (customer_id) REFERENCES customer (customer_id));
CREATE TABLE payment (payment_id INT PRIMARY KEY, rental_id INT, amount DECIMAL(5,2), note TEXT,
 FOREIGN KEY (rental_id) REFERENCES rental (rental_id) ON DELETE SET NULL);
INSERT INTO country VALUES (1, 'Chad'), (2, 'Peru'), (3, 'Fiji');
INSERT INTO city VALUES (1, 'Lima', 2), (2, 'Abéché', 1), (3, 'Suva', 3), (4, 'Cusco', 2);
INSERT INTO customer VALUES (1, 1, 'Mary', 1, '2006-02-15 04:57:20'), (2, 2, 'Ann', 1, '2006-02-15 04:57:20'),
 (3, NULL, 'Bo', 0, '2006-02-15 04:57:20'), (4, 4, 'mary', 1, '2006-02-15 04:57:20');
INSERT INTO film VALUES (1, 'ACADEMY', 0.99, 86, 'PG', 'Trailers'), (2, 'ACE', 4.99, NULL, 'G', 'Trailers,Scenes'),
 (3, 'AFFAIR', 2.99, 117, 'R', NULL);
INSERT INTO inventory VALUES (1, 1), (2, 1), (3, 2), (4, 3), (5, NULL);
INSERT INTO rental VALUES (1, 1, 1, '2005-05-26 22:04:30'), (2, 2, 2, NULL), (3, 3, 1, NULL), (4, 4, 4, NULL);
INSERT INTO payment VALUES (1, 1, 2.99, 'a'), (2, 2, 0.99, NULL), (3, 3, 5.99, 'é'), (4, NULL, 1.00, ''),
 (5, 1, 9.99, 'b');
"""
STAFF = """
CREATE TABLE employees (emp_no INT PRIMARY KEY, boss INT, name VARCHAR(16), gender ENUM('M','F'), hired DATE);
CREATE TABLE departments (dept_no CHAR(4) PRIMARY KEY, dept_name VARCHAR(40) UNIQUE);
CREATE TABLE dept_emp (emp_no INT, dept_no CHAR(4), from_date DATE, to_date DATE, PRIMARY KEY (emp_no, dept_no),
 FOREIGN KEY (emp_no) REFERENCES employees (emp_no) ON DELETE CASCADE,
 FOREIGN KEY (dept_no) REFERENCES departments (dept_no) ON DELETE CASCADE);
CREATE TABLE salaries (emp_no INT, salary INT, from_date DATE, PRIMARY KEY (emp_no, from_date),
 FOREIGN KEY (emp_no) REFERENCES employees (emp_no) ON DELETE CASCADE);
CREATE TABLE visits (emp_no INT, note VARCHAR(20));
INSERT INTO employees VALUES (1, NULL, 'Georgi', 'M', '1986-06-26'), (2, 1, 'Bezalel', 'F', '1985-11-21'),
 (3, 1, 'Parto', 'M', '1986-08-28'), (4, 2, 'Chirstian', 'M', '0000-00-00');
INSERT INTO departments VALUES ('d001', 'Marketing'), ('d002', 'Finance'), ('d003', 'HR');
INSERT INTO dept_emp VALUES (1, 'd001', '1986-06-26', '9999-01-01'), (2, 'd001', '1996-08-03', '9999-01-01'),
 (3, 'd002', '1995-12-03', '9999-01-01'), (4, 'd002', '1986-12-01', '1999-01-01');
INSERT INTO salaries VALUES (1, 60117, '1986-06-26'), (1, 62102, '1987-06-26'), (2, 65828, '1996-08-03'),
 (3, 40006, '1995-12-03');
INSERT INTO visits VALUES (1, 'x'), (1, 'x'), (2, 'y'), (9, NULL);
"""
MUSIC = """
CREATE TABLE Artist (ArtistId INT PRIMARY KEY, Name VARCHAR(120) CHARACTER SET utf8mb3);
CREATE TABLE Album (AlbumId INT PRIMARY KEY, Title VARCHAR(160), ArtistId INT, FOREIGN KEY (ArtistId) REFERENCES
 Artist (ArtistId));
CREATE TABLE Track (TrackId INT PRIMARY KEY, AlbumId INT, Name VARCHAR(200), Milliseconds INT, UnitPrice DECIMAL(10,2),
 Label VARCHAR(400) AS (CONCAT(Name, '!')) STORED, FOREIGN KEY (AlbumId) REFERENCES Album (AlbumId));
CREATE TABLE PlaylistTrack (PlaylistId INT, TrackId INT, PRIMARY KEY (PlaylistId, TrackId),
 FOREIGN KEY (TrackId) REFERENCES Track (TrackId) ON DELETE CASCADE);
INSERT INTO Artist VALUES (1, 'AC/DC'), (2, 'Accept'), (3, 'Nobody');
INSERT INTO Album VALUES (1, 'For Those', 1), (2, 'Balls', 2), (3, 'Restless', 2), (4, 'Lost', NULL);
INSERT INTO Track (TrackId, AlbumId, Name, Milliseconds, UnitPrice) VALUES (1, 1, 'We Salute', 343719, 0.99),
 (2, 2, 'Wall', 342562, 0.99), (3, 3, 'Fast', 230619, 0.99), (4, 4, 'None', 0, NULL);
INSERT INTO PlaylistTrack VALUES (1, 1), (1, 2), (2, 2), (2, 4);
"""
FORMS = {
    "inner": (RENTALS, "UPDATE customer c JOIN city t ON t.city_id = c.city_id SET active = 0 WHERE t.country_id = 2"),
    "comma": (RENTALS, "UPDATE rental, inventory SET rental.returned = '2006-01-01' WHERE"
              " rental.inventory_id = inventory.inventory_id AND inventory.film_id = 1"),
    "no aliases": (RENTALS, "UPDATE film JOIN inventory ON film.film_id = inventory.film_id SET rental_rate = 1.5"),
    "left": (RENTALS, "UPDATE film f LEFT JOIN inventory i ON i.film_id = f.film_id LEFT JOIN rental r"
             " ON r.inventory_id = i.inventory_id SET f.rating = 'R', f.features = 'Scenes' WHERE r.returned IS NULL"),
    "left, the other side": (RENTALS, "UPDATE inventory i LEFT JOIN film f ON f.film_id = i.film_id SET f.length = 1"),
    "right": (RENTALS, "UPDATE payment p RIGHT JOIN rental r ON r.rental_id = p.rental_id SET p.note = r.returned"),
    "values of the other": (RENTALS, "UPDATE payment p JOIN rental r ON r.rental_id = p.rental_id JOIN customer c"
                            " USING (customer_id) SET p.note = CONCAT(c.name, '-', p.amount)"),
    "subquery": (RENTALS, "UPDATE customer c JOIN (SELECT customer_id, COUNT(*) AS n FROM rental GROUP BY customer_id)"
                 " s ON s.customer_id = c.customer_id SET c.name = CONCAT(c.name, s.n) WHERE s.n > 1"),
    "subquery of itself": (RENTALS, "UPDATE film f CROSS JOIN (SELECT MAX(length) AS most FROM film) m"
                           " SET f.length = m.most WHERE f.length IS NULL"),
    "bracketed": (RENTALS, "UPDATE customer c JOIN (city t JOIN country y ON y.country_id = t.country_id)"
                  " ON t.city_id = c.city_id SET c.name = y.country"),
    "cross": (RENTALS, "UPDATE film f CROSS JOIN country y SET f.rental_rate = 1 WHERE y.country = 'Peru'"),
    "a key that others point to": (RENTALS, "UPDATE country y JOIN city t ON t.country_id = y.country_id"
                                   " SET y.country_id = y.country_id + 100 WHERE t.city = 'Suva'"),
    "order and limit": (RENTALS, "UPDATE rental r JOIN customer c ON c.customer_id = r.customer_id"
                        " SET r.returned = NOW() WHERE r.returned IS NULL ORDER BY r.rental_id DESC LIMIT 2"),
    "using": (RENTALS, "UPDATE customer JOIN rental USING (customer_id) SET active = 0 WHERE rental.returned IS NULL"),
    "delete": (RENTALS, "DELETE p FROM payment p JOIN rental r ON r.rental_id = p.rental_id WHERE r.customer_id = 1"),
    "delete without alias": (RENTALS, "DELETE payment FROM payment INNER JOIN rental ON rental.rental_id ="
                             " payment.rental_id WHERE rental.returned IS NOT NULL"),
    "delete what nothing hangs on": (RENTALS, "DELETE i FROM inventory i LEFT JOIN rental r"
                                     " ON r.inventory_id = i.inventory_id WHERE r.rental_id IS NULL"),
    "delete and its cascades": (RENTALS, "DELETE i FROM inventory i JOIN film f ON f.film_id = i.film_id"
                                " WHERE f.title = 'ACADEMY'"),
    "delete using": (RENTALS, "DELETE FROM p USING payment AS p JOIN rental AS r ON r.rental_id = p.rental_id"
                     " WHERE r.inventory_id > 1"),
    "delete using a comma": (RENTALS, "DELETE FROM payment USING payment, rental WHERE payment.rental_id ="
                             " rental.rental_id AND rental.returned IS NULL"),
    "itself": (STAFF, "UPDATE employees e JOIN employees b ON b.emp_no = e.boss SET e.name = b.name, e.boss = b.boss"),
    "itself, the other": (STAFF, "UPDATE employees e JOIN employees b ON b.emp_no = e.boss SET b.hired = '2000-01-01'"),
    "delete itself": (STAFF, "DELETE e FROM employees e JOIN employees b ON b.emp_no = e.boss WHERE b.name = 'Georgi'"),
    "three": (STAFF, "UPDATE salaries s JOIN dept_emp d ON d.emp_no = s.emp_no JOIN departments n ON n.dept_no ="
              " d.dept_no SET s.salary = s.salary * 1.1 WHERE n.dept_name = 'Marketing' AND d.to_date > '2000-01-01'"),
    "a key of several": (STAFF, "UPDATE dept_emp d JOIN departments n USING (dept_no) SET d.to_date = '2020-01-01'"
                         " WHERE n.dept_name = 'Finance'"),
    "its own key": (STAFF, "UPDATE dept_emp d JOIN employees e ON e.emp_no = d.emp_no SET d.dept_no = 'd003'"
                    " WHERE e.gender = 'M'"),
    "no key": (STAFF, "UPDATE visits v JOIN employees e ON e.emp_no = v.emp_no SET v.note = e.name"),
    "delete, no key": (STAFF, "DELETE v FROM visits v LEFT JOIN employees e USING (emp_no) WHERE e.hired IS NULL"),
    "delete of parents": (STAFF, "DELETE n FROM departments n JOIN dept_emp d ON d.dept_no = n.dept_no"
                          " WHERE d.to_date < '2000-01-01'"),
    "delete with exists": (STAFF, "DELETE FROM employees WHERE NOT EXISTS (SELECT 1 FROM salaries s WHERE s.emp_no ="
                           " employees.emp_no)"),
    "a stored column": (MUSIC, "UPDATE Track t JOIN Album a ON a.AlbumId = t.AlbumId JOIN Artist r ON r.ArtistId ="
                        " a.ArtistId SET t.UnitPrice = 1.29, t.Name = r.Name"),
    "names in other letters": (MUSIC, "UPDATE Track AS T JOIN Album AS A ON A.AlbumId = T.AlbumId"
                               " SET T.name = A.title WHERE A.artistid = 2"),
    "natural": (MUSIC, "UPDATE Album NATURAL JOIN Artist SET Title = 'one'"),
    "delete of artists": (MUSIC, "DELETE Artist FROM Artist LEFT JOIN Album USING (ArtistId) WHERE AlbumId IS NULL"),
    "delete, then insert": (MUSIC, "DELETE p FROM PlaylistTrack p JOIN Track t ON t.TrackId = p.TrackId WHERE"
                            " t.Milliseconds = 0; INSERT INTO PlaylistTrack VALUES (2, 4); UPDATE Track t JOIN"
                            " PlaylistTrack p ON p.TrackId = t.TrackId SET t.Milliseconds = p.PlaylistId"),
    "two tables": (RENTALS, "UPDATE rental r JOIN customer c ON c.customer_id = r.customer_id SET r.returned ="
                   " '2006-01-01', c.active = 0, c.name = CONCAT(c.name, r.rental_id) WHERE c.city_id IS NOT NULL"),
    "two tables, whose rows go with others": (RENTALS, "UPDATE inventory, film SET inventory.film_id = NULL, rating ="
                                              " 'R' WHERE film.film_id = inventory.film_id AND title <> 'ACE'"),
    "delete of two": (RENTALS, "DELETE p, r FROM payment p JOIN rental r ON r.rental_id = p.rental_id"
                      " WHERE r.customer_id = 1"),
    "delete of two, one of them by a cascade": (RENTALS, "DELETE i, r FROM inventory i LEFT JOIN rental r"
                                                " ON r.inventory_id = i.inventory_id WHERE i.film_id = 1"),
    "delete of three": (RENTALS, "DELETE FROM payment, rental, inventory USING payment RIGHT JOIN rental USING"
                        " (rental_id) RIGHT JOIN inventory USING (inventory_id) WHERE inventory.inventory_id > 2"),
    "delete of two, an outer join": (STAFF, "DELETE e, s FROM employees e LEFT JOIN salaries s USING (emp_no)"
                                     " WHERE e.emp_no > 2"),
    "nothing": (MUSIC, "UPDATE Track t JOIN Album a ON a.AlbumId = t.AlbumId SET t.Name = 'x' WHERE a.AlbumId = 99"),
}  # fmt: skip


CASES = [
    pytest.param(form, policy, marks=pytest.mark.thorough if policy == "versioning" and number % 3 else ())
    for policy in ("reversal", "versioning")
    for number, form in enumerate(FORMS)
]


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize(("form", "policy"), CASES)
def test_a_join_is_taken_back_and_done_again(base: Base, form: str, policy: str) -> None:
    schema, sql = FORMS[form]
    base.run(f"SET sql_mode = ''; {schema}")
    before = base.dump()
    job = base.job(sql, policy)  # type: ignore[arg-type]
    with base.session() as session:
        session.run(job)
    after = base.dump()
    assert (after != before) == (policy == "reversal" and form != "nothing")
    if form == "nothing":
        return
    for verb, wanted in (("undo", before), ("redo", after), ("undo", before)):
        with base.session() as session:
            session.revert(job, verb)  # type: ignore[arg-type]
        assert base.dump() == wanted
        assert len(base.held()) == (verb == "redo" and policy == "versioning")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE film a JOIN film b ON b.film_id = a.film_id + 1 SET a.length = 1, b.length = 2", "under two names"),
        ("DELETE a, b FROM film a JOIN film b ON b.film_id = a.film_id + 1", "under two names"),
        ("UPDATE country y JOIN city t USING (country_id) SET y.country_id = 9, t.city = 'x'", "told apart"),
        ("DELETE r, s FROM rental r CROSS JOIN (SELECT 1 AS one) s", "no table s"),
        ("DELETE p FROM payment p JOIN rental r ON r.rental_id = p.rental_id LIMIT 1", "MariaDB doesn't take this"),
        ("UPDATE film f JOIN inventory i ON RAND() < 0.5 SET f.length = 1", "depends on RAND"),
        ("UPDATE film f JOIN inventory i ON i.film_id = f.film_id SET film_id = 1", "which table"),
        ("UPDATE film f CROSS JOIN (SELECT 1 AS one) s SET s.one = 2", "isn't a table"),
    ],
)
def test_what_a_join_cant_do_is_said_before_it_is_asked(base: Base, sql: str, said: str) -> None:
    base.run(RENTALS)
    with pytest.raises((Unsupported, InvalidInput), match=said) as caught:
        base.job(sql)
    assert isinstance(caught.value, GoexError) and caught.value.next_step


def test_the_same_row_reached_many_times_is_kept_once(base: Base) -> None:
    """A join gives a row as often as it matches; the rows of the other table aren't written."""
    base.run(RENTALS)
    before = base.dump()
    job = base.job("UPDATE film f CROSS JOIN payment p CROSS JOIN rental r SET f.length = f.length + 1")
    with base.session() as session:
        ran = session.run(job)
        assert [(one.table, one.verb, one.rows) for one in ran.reached] == [("film", "update", 2)]
        session.revert(job, "undo")
    assert base.dump() == before


def test_rows_that_a_join_gives_often_arent_taken_for_all_of_the_table(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the others would be locked, too."""
    monkeypatch.setattr(rows, "MANY", 1)
    base.run(RENTALS)
    base.run("INSERT INTO film (film_id, title) VALUES (7, 'HELD'), (8, 'HELD'); ANALYZE TABLE film")
    job = base.job("UPDATE film f CROSS JOIN payment p SET f.length = 1 WHERE f.film_id < 7")
    with base.server.connect(base.name, autocommit=False) as theirs, theirs.cursor() as cursor, base.session() as ours:
        cursor.execute("SELECT 1 FROM film WHERE film_id = 8 FOR UPDATE")
        assert [one.rows for one in ours.run(job).reached] == [3]
